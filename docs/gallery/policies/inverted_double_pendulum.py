"""A policy of Brax as one NumPy function: `policy(observation) -> action`.

Written by brax.io.export. The function normalizes observations as in training.
"""

import base64

import numpy as np


def policy(observation):
    """Return the action, shape (..., 1).

    Args:
        observation: array of shape (..., 8).
    """
    o0 = np.asarray(observation, np.float32)
    front = o0.shape[: o0.ndim - 1]
    o0 = o0.reshape(-1, *(8,))
    with np.errstate(all="ignore"):
        x0 = o0 - c0
        x1 = x0 / c1
        x2 = x1.reshape(-1, *(1, 8))
        x3 = x2 @ c2
        x4 = x3 + c3
        x5 = 1 / (1 + np.exp(-x4))
        x6 = x5 * x3
        x7 = x5 * c3
        x8 = x6 + x7
        x9 = x8 @ c4
        x10 = x9 + c5
        x11 = 1 / (1 + np.exp(-x10))
        x12 = x11 * x9
        x13 = x11 * c5
        x14 = x12 + x13
        x15 = x14 @ c6
        x16 = x15 + c7
        x17 = x16.reshape(-1, *(2,))
        x18 = x17[:, 0:1]
        x32 = np.tanh(x18)
    return x32.reshape(*front, 1)


def _numbers(dtype, shape, text):
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)


c0 = _numbers("<f4", (8,), "pSkIPjgWFzpCP2y7++t+Pxzxfj/aRxg8lLlBPKwp1rw=")
c1 = _numbers("<f4", (8,), "FeChPnQptj1jvq09sRC2PBsUBD2Cu8s+34gkP4ukSz8=")
c2 = _numbers("<f4", (8, 32), "Ak6PPtx5ib4nAIG+FGQcPS7OO73+Txw8yLN+PkbH+j31uFW+jA81PkiKxT7x1Os+cfkFv5EDoj6Xswy/N9EBPy9nt74NVh8/yiCDPmGxkDx9ldQ+IW3HPDcK1T6t27O+08jHPnfXGb9adey9dTuMvkpeNb1jCRE/g2+kPjVRDb/4qTk+UIgYvgxpoL5BCGI+7dzEvjlmGj0WVgU+7tExP6MZXj79qQC/Omi4vhuirT1kcmi+Bl/QPoAtCb5iJ7c9oAMEv0QdcD4br80+/ERTvtkoAj5HvSs/5U2Yvtp7Bb5VHtM+e00yP58cgDqfgKq+voe6u9QK2b71/a491DdGvxbJPr90Tya+zLG7u3WCCj6UdEg/XFfsPih7ED6jq6c9BXWFvk/Gt719vim/b4+fPmFmhz77xQ+/1mnkvsxW7z7Poza+GQpIv18sI76iDoO+7DdmvlG02D4NDIG8HFIJP2UlxT5CF7y+KNCRPikz4L34xS4/m6wIvkT0GT/bWBu/l/aevhShIz8nN/A+j5hMP2dk8D4Etxs/DywKv9Qjvz5NYzo/tGBqPsXUOL7apuu+IrKkPjnWkT6HY1M+mjvuvD9oiL4KMLM+NQCLvova+z3mjHU+XUYKP5m5nr4ig4G+B0QRPhDAlD55dCw+Kxl0PfqhWz4lFxi+bWaGvsZ2d74N1Re/c1I9P0/QKr5ack0/JUE+P+FEQT5RqXw9y53RvvmtLz8S/Eg/wSK9Pn0lfj7BTg+/d6gGPw0FNj8v8Sm/xxjnvmVNCb/mlx0/pe3XvqS9nD5gryQ+8CzxPrSFHz4F7g6/c/k8v39OCL98G5e9FFKGPsoU3r4mDeU+RhIvv56NP74SJ+U+VfTavDyO1z7knwK+Zq/YPSZGM75C8H89eAH4vvmS4T5utWk+ES4nP03RLDwjkXM7hZhhPnPtRT4XtsO9Yt7RPs71gL4+OKs+UefDPtj37T7STJW93D+cPI0KxD6xVkW8TyusvUSHvr5k/zG903CfPvWZaD4Mhx4+7Gu6Ps+FBz5/KDu/cjAHvnOJcz4Wqbm+MWFIP+0Arj4uaia/0tLaPYxizz5MR7i+TtQOP9aGDL7t9+C+EpO/PnSGAr8MFgM9fWPVvip5Bb9WDp6+wrQWP7ih1j5FmNc9ou7svq3XE78bFw8/9LvPvpgg5j4yrfE+Z0OIvuH8Sb/sf9O+pNeJvk+Fq7yNDX2+mgfTPubeYT6Ib70+VdnwPkD6UL4iTbU++imYvu6PgD0qAAw/isaePg3WRL/OFj0+ex7vPY4KYr4U+4I9sN5wvgAqLb4oZw4+S024vtyVQj/Ip6s+nwaCPg7P/T7jfO++xbGvPoyNPT1r7Sw/uUxRvw==")
c3 = _numbers("<f4", (1, 32), "2cfDvPuKIz6He1E9a6SgPjmEnT5+Zu481ZifvVBGMjy+toA+rFaJPo2NIr6jCSe+biAyvTWVlj7qWy8+WXNGvoXXgb6ISsC90QdDPpkGgr6I7Sy9bDyoPBDGAD62R2m9x/WWvpBRzr0gdRO+9KarvJyDXD19y+S9AKopvW6uizw=")
c4 = _numbers("<f4", (32, 32), "HZj5vV5SCzxEVXQ+N2SRPqaXQj7vjbm+ayz8PToShT7rPb0+9v6Ovsntsb7qmhk9wnlIvbuZJr7jUle9KUVHPhxwIr1NJKC+h7oePksqpL7lr409kr8APqmnID7PCnY9EnCjvFkaIr1Ysvg9IBh2vA3wmL7qW1e+qTDHvluMjb7EUKe9A2akvtM9sL6fcYU+3TKdvZ6CUj5M8ZY+J8UFPeWCAT5m/au9y0u2PRCnaD6zRpy9wszIvqR4Db6qN1C+EZwvPl2kdz4c9r6+dayqPnr3+z6eLY0+/+BAvlUjD76jQ24+zDSFvjPDAT4dLAC+rM6JPss6Kb3mz4g+/CCOvo/8nbwz+qa+skC1vXulAj1OeHa+lSDePWGTxL10hCW+/xUuPqagYr73LkG99AiFPpN7XL6yuou+WV+9O+UjN77Zg9K9vsuOPhIIkD6276q+Y6t1Pj1wA71ZWxK+MJzwPUWzLL49FAM+786nvT3Jmb6KMAC+ZtRKPqz4Jb4Lo0W/BMx/PQJJhr6T8gE+l9rMPkUIfb71MC4+vKktPltdlr4zV6K+gIX2vTyL2T6xWoE+wFleviZ3OL5CXH08AA/nvQKrqT5TRBO8GspgPPdqrD4Pd5w936v7PWA2h7zbqzM+cZShPeHvpL5qVCe+2HE5vQomPD5dOem+zJExvgPZJr6WGJu+cWgLPslohL5+zjk9g3VJPkKn/T6BQyu+dVqTvkis074Cx9S9/tIIP3iYar6AciA+EJyGvrXs3r39F4s+0ycpPjPeyr1C0F++tGOfPs0tgT7NLLU8fcV6vqhdVD7c6lk+fGu+vgD1lb3STWO+Lwa4vuH7Ur41oGE+hF2XvlzsnTyk/gM+u9eDvlBXtj1yPQe+FPuQPSwGTj6PRDg+5BPIvcxzUD4GcNk9atGoPbc/GL7ARl6+NDUpO1TbNj2cc4e+eET9vfyDVTz7wZo+3dPGPaM4Br5c81G+otzxPRNkZD2f3py+BDF+PWdgnzzSs409YKZoPnVzcL4gViS+NKZ+Pm4BI72CrHM97IOAPv0rtD6CD8y8P4buPZEtqj6C+809MlAwvmqRDD7/Aq69GYG4PTtplj6p2Ds+ztOSPuzr5724ZlU+KNL0vTkG2j2xhaO+hFiavh8aqDxbWPW9MwIoPt0Eq738qMA9qmdHPnXJFL2WiKe80oOYPR6pjT6tA60+516wvamHxL5dV2k+qYouPjUMw74SoHY9u5NcPeVpGj6JwM8+H0JJvk+ApL6HWDO+3m94vm4+KD2a3Ve+x35ovQ45Dj90Uka9thRAvhWjjD4JSQW/U+E9PGjdHr5rITi+ON0+PSEiAL2Lo4O9/wZKPmfnDr2H8MM9k+rAPuZuNb51DKC9oZByva6NZD6ugik9e7sOPjyXCT3wZ28+QEWkvQ4d6L4yxuE+vMWePqopDb4mPUu9/d4pvn0fNL6iGpA+p9VrvogmLT52BpM+msCCPvjnAT700ea+5YsaPvphET4eHHy+IFp6PosS6b4+oKG+dIQ1vtCqyL2IEhi/e/MdPmRS3L3Q/E8+APd4vRSWKL5SDC4+a7h/vvN8Mbs5Lpu+7AXRvXNjpT7sKDU+Y6eGvhTrpL51kmg+tNWQPiGUmD5bCf46tVp5vt3kvz4KLAM/uZ4mPgbaRL6KyxQ+njJrvu/gg73d/zQ+EqbFPPHlKb2NO6C+yK8hvTBnrr3jkec9AgyNvVxIAj5D+gW9VPoEvjO4Tz2TCsK+koZDPqVgnj6LyZg9RhUWveeTSz7zQxC+9/kSPgpch76+9nk+WGKAvc0/OL4Sb5s+wcqdvmIgor4f+eQ9SV9GPsWkkb4r4+I8pEXpPVTjA77vF929IPgUPuuXGr1xaBu9MFe7Pe5piD3g+0M9b8r+PaAi8L7Dto69Eh4DPeH6rL3u2hu+RnTFPUNntb0qGK49KYYxO1ao2j2y50Q+uT/LPZdvqb3Zldm9JJipPvCRJD6JHo6+1lYMvX5zcT5nPx8+MdSwvcNfO75K6Ak+V/InPWxp0r1fpyu+UTpZvqPhbT5h6NQ9qkGFPoaY4T1l8tm9H4CLPXhejr313OW+4PQVvpx1+D0Gidc9YfVyPudIUz4zfmc9L2U5vlg0ejzVFVc+sgZxPoI7u722lYI+looyPuRolz5/ne49HQQwPtWf9TvCwNa+vvK6uX+Yir4xaUa+5JRnvd5aWj7fcVM8qsTuvWWLmL7VuW2+BSoSPrmO7r2kAA0/sQ6VO/aa9z0Alog9QSIavfCesj2RM2k9nHxePhiKHb5tfy++3MGYvp0p5rxe3RM+Dh+vPpougL6+/0++AGqrPnOPpj7pskA9bBfhPTRagz7Rh/U9fyPZPc+KOj5QnYA7UvM1voNWSr4HEQY+fL9PverAzb5FrX6+4WucPgu2Bj42vem+9t/JPnML4bwg4YO9bpdXvkYwj75cU5M+ePQdvhrJkT4xMvW+qpSEvvQR671LRdE9GXKSvnT/Sz5z0IO8ertLPhjhsz6tJtK+f1R4PlQHDD6/wgK7LwBjPuZtAD1iqT28GVQIv+A6Aj0hcVS/1T07PUZ+5r1GlbG70WBTvvmd37xyyXI7Q4pQvvBEqz7C5j09U+r1PMFYs70Dqhs+KpM2Pj5YFz6uFoi9jrbHvbttMj13PvS9xlWAvQTgl702VNe+gQOOPH853T4lQLq9HaFePqTzD77pboM+ZYupPhmotz7tr4Q+72JmPgyavj6/HIs+VtsgPkOOFT2vCR+/0dVgPp6ZC739jEk+OMyQPqBWXD6AKSM9D/c+vwa8RD4DUJO89wc4vV9pLj74i5q9gEEivlUF1z1NJhO8ndx1vuijQj4yEdq9MdNwvvC/b72Hpnu+9VOwPSC4yz0O9JY+G+3vPOdODL1V7tI9tTGAvhS4CD54WBi+27iLPpy3Ub7yPyW+QgGvvjSAxLuq7Nk+75/CPv5uLz5mOCO9Lt+2Pdpf2T5URDE+rrPrPKDSlr4Vl3++Ojo1vgf1pj0HMFo9B82IPbtjnz5YxDI+t+C/vvaGPz7429S9doVYvq8pLD7z/kU+s9mRPExVer0krNG8L7GIvsBJmz3oWxw99QcQP+b8hT76x/8+x24MPjwVF762RD29aemSvQuO1z4xci8+YkB6Pq2rED4LGA49eWQLPpi9Pr13VXm96ujWPRP1dLyabjk+fhYiPuHMFj1HiBA+G5qEPk1UPj2g05O+hrJrvvfR6r3Xb32+WeNGvJ1U772u4Ig+b0/rPYx2ST1ylyW/m9gjPtKi4b7SiIs9Ee1ePfflhD4s+VW+3GvGvpXAiT4D/iK9/x1cPmRYij55HH8+4Fcfvi3jlL40i3Y+eJMkvQNfn76Tbps95RpYvADXIT5RGgq9WVcnvfBQwj04d38+gZHCvQIF5TsN8iG88BkBvZlVHT4WRig+OAOFvaYvnD67Hy++wnErPkX2Dr1Rt00+5BRcO4rZgz3kiQS+pvuGPntaiz4ldmE+9h4Kvta6y71GSGO+wgECvXBlpb0V9gy+yHcAvjDeAj5iFKA+++BBPlEqnD4uCIQ+sqWiPeW6Zb5GMsA92WqLvlaEob2pmIE+9NA6vvrvHb5XbJi+jz4hPhmAwD7XJyu+iX/jPauhvL6bK1W+hJQhPJ6OOT0PYUe+xupEPS5Ugrt2vWQ+gPDSvXYNyz4LBQ8/PBpivkgj/D21C5M+TTqZPOi7Pj5T+Le+u7yMvO7uBb9RKUe+nAY0ve7c2j0NW+28tAkRvUGFFz9wazo+hm1AvitQnr0SS4I+69N7PDI/cT6U4CU90KuMPSxQND78RCK9kQwqPjeHLj71/kS+mJ44vmtfjb4H4qe9u2Q2Psl/c71+epi9kwK3PruRnT4TLa8+HzWIvgeEXr4j1dM+4OuVPQ/VIj5PLcm+OWJ+vqqPZT73nh28R7aMPIRvj77OCXK+GGMevkGAEr8wEO0+DrxUvcBKHzl8oBS++nO4O1ihC75zSHK+2U9KPQDvFT77gh4+0SQivnY7wj5Epr297l/HPva7Zb7lyxG+/dIBP+SlEb5Kc/89MUOYvpv+srsk6OW9TwytviMcqjzwrvS9xromPhBEP77oapW+IzkhvuQMXT5/Yr09c+0svuEBdr3NQYK+wThvPjDigD4Ao6Y+umpPPq09Yr4IVn69/gv2vX+Jgr5sEnW+FAUGvrePb75sMrm9mzSqPkYNnr7rBoy+nUkqvuPyjT7UnSU9hrmuPX2QAL4b0T4+KAtXPplAJj1uNpY+OHIfPt67mD5rj5s8ur8IPjB3kj7l1qG85I2NvsdgJL+Geqc+jx6tPgJnz7tLpDK+Ka9Rvhrpsb5Hq7q9Vfm/vu5ZIr757Wk+QXgavuUVSD4kFTy+LHvVva7ojL6CU3K+icrHvjR/v72ckIO+3vNYPiVImz6uk4C+Ged7vWE3Qj3ejBs92pMZvvaQoz6Bb/s9zGg2PDOySL7xqms+qSU2vfcTxT4X5KG92Llevl4MnTwMBsW+3b9vvcnfMD6rHY0+1i0iPjEKNT5CWXa+7HIyPvfdGrwFeLw9EEryvs2yWj6p3K29HHNBvY3b8r7vyA86l60VvZGWfD0NFhU+JWd3PgAbDj4Jt6m9SMDoPXu3Iz5doRg/dfaMPmltYb1zHwS+LzzOvnluw73xqjK9HENDPlvSBL+LnGo9xkmfPmnLWb1SEoW+ewyYvsr+b70Xrja9AayZPibDYL6jmpS+SjwGP3FcgL6CPbo+6jfGPkRAqT4vep09FEf6u07IgjqOOqO9bT+xvnt/Ir/R/6s7h5PLviHZzb6siH++huPpPUsZBT6zfaU8iPjRvvbba77sjcG+6XmOPtsJyT215TM+JhQVvs+iUr7wQh8+1zoEPaMobz5UoJe+J6IJvlbmCD9F5bS+ZTb5veVQhz6QUle+Qh/xviQYZb1wEMe8fX0/PnZdezyTcPI9e2iEvdL+Wr7FCzE9bJ2EPWXWz74Cs4A+FzkLPbXMQj64PCQ+XtGYPi/A4b3+12S+WV3HPdusTD66t0S+64N7PmOZVT6Hrkc+lGhbPVWUVD51MA8+6Bovvv2IdL2YoqI+TS33vj9TaT1KzSK+B2++PWwBrz7YEba9YoKvPebG2z0BcEo+uPenPfbDl76GR0G+ZNGxvK+iojxhGhE8L6GtvvZmD70rTK2+IF2NPsHhxb1pBlC+Gl17PAExBD7te9W98m+3PYiPGD59M48+MEegvdlmhj58/sm9Yjy6u4I8jD6Ys9+95OfrvdpSZD1pR4A94rE4PiBmk75I/iS+JwWcvrGbnj36472+JRZGPAHGkz5pMGK+TYcvPS2/Eb/fbX6+MZ/XPhAsrT04qhy9FsE0v6wEJb7YXWY+yJCLvQKxdD1ywWs+vVbiPTqfrr7VYBY+nqJrvqDZRL712QU+W3RAvpbD1b3149A9DfM4vXxtBD7D2FG++pk8vvX9ML4Yt9C+nG1NPQ==")
c5 = _numbers("<f4", (1, 32), "ho0wvvehKr5PR5A8bvmPPmaSsr3Zz2M+I/iwvCq4Kb234r+9BCwRvgy8jj57m9C7aKqVvaElhL7aer69sAdkvYAdWD0FVTW7aef8vZFHKD6WE7E+wvjXPM6b+73oRQo+UH10PY2Gh72iPTc8xx8LvrQ5ur3mRXS+CHiFPUMoHL4=")
c6 = _numbers("<f4", (32, 2), "owFDvYFh4D6uu6s95ib9Pg+suT4Kf249pDK4PNUXIL9bIaC+ZcyuPkzcBj4XJkS/TWBGvs79vryD0F4+FgE/PpkvdD6OR80+6V1rvbZIvD4K7zy9FQNSv57oIz7efJG9ax3WPW/4ND5gNGU8IJAFPzAdjr1DdKI+WGk5vnyWFL59f1C+M38uv6fP6b5W+n08JS6PPRmbPD60XN+9nT9AvzroHL2fFVK/eP0TPjaTk76tOz6+v9rkPhfWZj5M6hm/7LM4PsbBwb6RTFM+9gXbPl2/5j32x0S+90aBvpA8ST8HpnS+KPAGP2znNj3Y2kI/w/EQvrTKWb6eVv29JOcCPw==")
c7 = _numbers("<f4", (1, 2), "SugPPcxLEL8=")
