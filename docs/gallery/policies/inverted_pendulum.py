"""A policy of Brax as one NumPy function: `policy(observation) -> action`.

Written by brax.io.export. The function normalizes observations as in training.
"""

import base64

import numpy as np


def policy(observation):
    """Return the action, shape (..., 1).

    Args:
        observation: array of shape (..., 4).
    """
    o0 = np.asarray(observation, np.float32)
    front = o0.shape[: o0.ndim - 1]
    o0 = o0.reshape(-1, *(4,))
    with np.errstate(all="ignore"):
        x0 = o0 - c0
        x1 = x0 / c1
        x2 = x1.reshape(-1, *(1, 4))
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


c0 = _numbers("<f4", (4,), "n2KfPlFh4zsE7LA9aXZ0uw==")
c1 = _numbers("<f4", (4,), "j1luPrZ5az2Ou+k+YDROPw==")
c2 = _numbers("<f4", (4, 32), "YlSBPlzZBz1Wx/G++oRMPiHrLL2MhNI9SaiSPjefnD7pfay+aPntPkNKET/CI0w/IJ1Gv9yjOT/s8lG//PBoP1RTOL8xw30/WPipPr0YiT33Whg/ouvLPilyKD98vCC/AMsZPymDYL/e81O+b6Z7vp6bvL1tbUw/3pYdP4bgUL8IuA0/261UvpC34r6S+5k+Xlgav1PYI74tYr+9dXAqP6L7Wj+1QAC/sTAQv9NBwr5o5Ae/ODxLPyMs1z1r7w6++NNMv+Pb+T6pqAY/mIdzvh3Jsz5CZbI+VMstv5Exk76C+i8+35mEP3g1t76xYcm+0bNcvtK+Ob/bsUG9+pUiv+0RHr927rE87mDzvqK4Tb4WjW0/WazQPlyHBz8B7kM+Ak8Uv/aOBb/WDeq+bshhP/0OpD7++xS/RoEXv1f7QD+wn76+xpznvp5T/70jK8Q9/OjVvWG3ED8eOTw+8xE4P+fVVT/ZtWy+lwoXPyJIdT0GQGI/RqUavqlCSz9nhOW+tHKAvpN9Lz8U3zY/95Q4P97Lij72fFs/P48mv7PIFD9sbzQ/qmJrvV/hjL4IIoa+FK0BPxRpHD68aPQ9fO+KPf9uHr52bzE/ezDZvqIS4z5JAN4+N/M5P15XDL8wSFq+LlgoP4y8Oj8oLaU+ywUVPggajT5VpQe+2LOJvhYrw74=")
c3 = _numbers("<f4", (1, 32), "w0ZNPcOZDz74IES9GqBqPXr5Uj1zxSk+UVLkvKYxJj5QUxg+sTEmvA3j1r0vdKM9SzWhvUhUCz4CQcs9f9RWPiRSpLxouww+NpakPY09t7uxzLk9bwchPqY4GLzvk729aIvWPepmXb0WS1k9a36MvadKCTyBara9EfTAvWPjpb0=")
c4 = _numbers("<f4", (32, 32), "N+H+vTee+Dtqyfs8v+4LPt9zjj5Jtem+eTxpPvfnCz7aUn4+g43svZNqP76dNce9Lfsavum7Tr7hz909BVWQPhlrrz0YxWG+P8hgPijaUb5/l18+41xDvRmRYD7jhyM9XKwnvh8/rb4RZAs9AGkLPsfjTL3cOZu+UtmPvt7UNr4O+Sa9mNk/vjS0i75H0ZY90GykvT1gizxmY2E+lkAiPrzCkD4DiqO9bMamvsdwlD5PPbs9R4v7vU4+C74oIL6+Ft/IvLjcKz7Ox6i+1MI+PQ3NCz7/gaU+4gCSvhMCgL75j4U+yBj+vVNcPj4OLFi+ZYGVPrBCgT70Hf28/auUvqFUGz0EAsm+lm9rvi4caD4vw/q9+G/hPYBKtL1CMWK+u6m4PW8yzL1BR6Q8yzs0Pu+vlb4ZOO2+rbTkPTmDg75TCWa92DCqPuqGPz4SOpG++ChFPtamG76mVYs8GdL1PVgImL7VcNE8P3Uzvu8HZr5T2Yq96htVPuP9Fb5yFFi+4tpQPn1x/72LYSo+EH2DPmZdNr5ilpK+JJMZPji5Ur6vJE6+Pi+uvW8gyT1li4A+U9+WvcedYD3diY09YphBvi2DWz7lsWO8MSNQPbo3Az6NTSq+JAYsPja9Qr3+aJE9hMm7PR9Zjb5iarm9VF8hvZ2afD6vcY2+jAbcvpH0Jb4Ix/m9zDRzPktT9L04N9S9UtdAPpopgj7W1aq+OJ8bvuOxZb7q7sG+IfOzPgCKPr7JZmk+XsKkvWWA5L4nb7E++E7yPZhzEL1QPkS+U/46PkJ4S775o2U7wPiDvTCoxT0gnCw+ueaAvhc4o70PIsq9KhMzv3LiwL1MVW4+IZ/0vCoALz0fzV4+iwozvvZtID42AHC+39U2vYMHUj5jBpg+ocaEPYn1BD7E0tS9GIQKPuY0jjwSEiG8k1WTvc4fIb6FNNa+jGprvqFzk71B8zk+/LLIvR/jEL1P/oG+x0GZPbRMKz4by2e+1z3KPaiPGb7b6as7i4hgPhavur5UNka8x0kFPuxWeb1wHCM9uRVfPrwxNj7txU4+uHt8PErqhj4XJ5w9lk3fviCtoT68HB69/IAiPUvMdz6vHsO80bahPjxkpb3whcM9jscKvbOYRz4L1G2+vuWXvnBJgzy2GS09y5svPuASFr4oZoo85YocPnjFmb4DtaS9AHIPPh4AJT73Kp49Wa/xuSURTb41nbI+kSJovb+WJ75qldm9tI0FPs64gD6glrY8Qh5lvhOsq70Oj6O9jgnjvYwbU76mgZa+7J+Lvgc2Rz4Qb5q9kZ5ovnrAuT4CmlS+NOK6vmsWOT4N8Rg++ysqPvr3NT5Hhb++FJ95vqnwYb0Y7kG9EflbvVYurTw1wf+906EuvoCEyD2Hnj0+5CDFvn91jT0npSY+sLMTvspWkr7zR6I+0o9JPlQylb6LyRi9LtaEvGxgmL2Bf6w+qGrevQXyvj3pdXw+wjonPh6mcL2CExy+N5NMPRgDB71hNIi+/KhLPuoz1L1U8Tu+I5oEvpTmyrwcTlC+pjuNPhlw/buBzjk+v5d2viJ9Eb7vDr68VEuHviO2kD18+16+Yp8NvaN+dj6LZSk+c3QIvoyhE75LJoQ+6drbPtcWtj6kYEQ94YMEvix1nj7GiHs+o0MtPkQmV75l90M8YmNkvmCg+70zMx8+7hjFPTb7kjxv7UW+p0gavXeLU72oUWk+F3KbvbwH9L3Wh2u+k54mvnhVLbtLt8W+3ChCvd5LjD36uCo+p3gQPk72jDzxeFC+QokBPtFEo75Wc9I+6zAiPl5Bmb2nS7c+ZhM0vkNHMb5dIW29pPisPjX+jb5rFhK+7bgLvRwMnL65M0A9yMwuPq6w9r3V9PY9KG5uPlkVJj78FTg+fPQOPsmrbb5YsVS+1wFJPb4glL6LmRy+QDQAPlMfFr9A7+Q9VTGMO/eZBT5wgo8+hjp3vrAWAb0XO+C9rPJ5PgFKNz6xSo6+RDCAvnHVjT4anpQ9nLSQPQthCL7QvxY+R/kcPcFhNb46yzO/3q2Fvu3gbj6IF488Oy0oPitCqj3bJEK+M/89PovLsL2N8Te+ivGAvmVXNz0t0Pc87+aDPo+BdD5x5/E965GWvjeFHL6DJQU+rvskPkyEMb6TVkY+WiKtPZM7mT7wrqi7iiwVPlI3+T1Amru+pBvcuwJ3Qr5pali+ms3ZvdKu1T0nf3I95oaOvVxoA70aUAu+lZ2BPtFVvr1oKcE+L+8bPg/MwL6Zlio9UUwaPWFmKz7KVL49f/UuvRYeGL7HS4u9KWiCvZ/PiT0x11Q+aCZ7PvEJXr4pe+y9OdAsPidjAD6G2dk9Qf/sPQwGUj4X0SU+fDiUPCONiD4iToQ9PyXhvTJzS77pXYW98aJIvW/fJb4PgkC+wOgNPlPhbDxSWra9MJomPWFKYLwJhSy+Go64vrrrgb3aAfQ9ZZxkvlwC5T2MmxW/gr4avg61h7ynJ789Ms4TvqZ8hT568dy9VOWWu2RdKT7lFci700sKPk2pEL7wvyK9WS8cPn2kuz6Jnu89ibGbvlL0njwpYUu+R1xVvbgWZb2sDk8+Cf92Plnshb6QoGY+9sD/vrbkoz4UUac7DzMJvxEZNT5/vGs+8esdPvp47T1H/iS/E0+tvaoQkT0rNYu+pE8XvvcIhT1st1q+W2kkPr6diD7Hl70+1wO1PkdFCb5RGp8+/atNPgUPgr4Z64c8mf2ePnbNRT69r5E+CXoHPutzsb4axdW+17FsPv1rsz5SBZQ+G+rDPc5vXD3TeHU9/BkJvi9eoT2y2RW+WtnIvpOURD6DloO9EqMMPCkjRj78vwC+RCvHPcHwiz5PXsG+cHAIvpxrF75qM9++4qg0vW48Kb6N124+mLFIPRHPRb2YPqw+lFKbPbhDEj5Jr8S9OK4GPb5A+L1poBK+t8njvun62LvCSmA+pXNbPqqkFz4RT3082E+3u775zj6mL4Q+gUCAPPj1rL60A3G+7oIuvpGKwLwk4nw9v8ZTPiFVrT6ze+Y950lAvmB9hD6uF6e+aTRfvumIoj2Skt099K8+vm/zNr4YuNS7mWjKvYEPYT6sMIU8shrZPtvX0T5sKFg+MTBAPsL8gb1vfV89E6odPUI+gz5nNWo+xmqNPurTgz4Pyok+REKZPimoHb5QcKe9DdaVPpMYKr5hVr08elhfPvrWXz4aCi4+GSNpPi/q0L0IJke+qPOhvB4U/jspEEy+1yubvaeWmD2O/TU+WwfePTJpy7tyZbS+nv/hPH8aXr7yWJE9Rov1O4NaMD4TecO+CAV5vkZogz5lSwA9ZVFVPn22Kj5OxBs+JonxvZkpp74mPA0+j54oPQjrb76zX/k9XFtKvjwbTj52BKM9E2WNvb5eUz2Fw+M8PeePvqv5ur1MEwE9JKwmvkQuZT7THJ0+D/Svvakxrj7Mz3W+7LsGvpmyY735JUs+bNMqPTZbory8B8W+S0+KPvkO0j4FEe4+LR0DvhqUd778d7u+WWQcvi0e0b1BU4y+Pnxzvss0dD5txTM+nAdvPr8v2T55PWQ+FKk9PjqHuL6lB4Q9UfWnvoOZsb4McIY+GhKQvtFVNj6eQMc963isPtnybj0cuW6+1ywyvls9Y73cTRc+u/rhvtLF875pMBA+wqPOPicR0j5XLUq+Uw/Nvmfbqb1vRg8+DhwWvjJ5jr700Bi9TQblPpmMWL5sO6W9KOfCPglZQL4KuS8+S1rdvmCFn75iz4Y+IuPuvuw3Yz7ISqE+gHUyvcBxGb5TwAs+sWLrvcTdHD4Tkw++picFvfOdEz4L3Iu+w4ofPsaXmj2eeRS+NAeOvVmwEr9N6I295nOYPm4Ig72NH/88jIy4PiKpSD6S2G0+NdevvU19R77Ypog+WWQzPr+tXz0AN4C+zivPvhOvnD6KYOg816FmPmq/jL6O6kq+qQAavk/8e74DN78++iSWPWz9C76/cPy9KoeFPRIfgL64RDq+SMYtPhevLj7hGkw9nfeZvkw/pj5QAIC+L3yUPjDaQL4JjUe+b4OHPnWhsL2DnU4+9N9FvhzIiz27+4+96Hy3vtpoDrwGxra+Z781PiuxC74UehS9rXEDvgSV3j6d2KE+HpmKPvsZaL4zu0i+N0ypPX0fvD6PQPM+Ok2UvteJYL5Dk6A9A9AjvP56q725eUm/HAryvfL+v75hpje+6eCVPofkur4suNW+6HR9PS3AuD1m2p0+sPe3PnZckr3tUqE+o4wLPXdzNL/LWXQ9YFb3PVHo6T2bhf28BAa/PYrqBz7Gg4M+lcyHvixeDr+ahIY+AZIhPpYHkr7LVsW+mj7wvWR3bL4hELa+kwwjvyYUk75WbYk+T6V5vvDxpz0hFpW+ebP8veqTJb740YW+4UncvSer8z2gD3S+oIU1Pi4Bnz5C0ua8tE/avsq3uz3b3PM9hmdLPgEOwTyRdI68Pa6sPbE32j14gey8sRG+PhJyTz58PcS90otbviAVzL5Z6Ca+dShxPcsFfT3Y2zI+nhVMvtUT+D36xI6+eZVyPQ1Ekr63Y1I+27bOvsx3iz7xwUa+3d8kPo9Hm75Qg2U9NSkfvTPtC77m3bO+9P0cPoEogT7OCCu+/jI9PqmaZz2Rc2I+SaKOPX9TND3DS8m80nx1vur4p76BKha+FS6NPip4X76oE7e95j0SPtTRD75NAGG+jSY1vpBfIT6GQQM+qiLYPZVpBb2C+62+rjVTPt+xgrtEc1097XckPhiDbj64iXO+7BNwPWBL3z2jfXW7O4Eavk7jEb4XhIE9gPGTvsZlDr7cl0++JHFhPVFYKb1CDzG+3HVDvk0OHT1Jwym/dInmPbN/ZD6Hp4Q+R5+kvJvxAb9MNz4+NhqFvS53gD5huYG+/C2LviQQcT4zz3m+LXOgve96jT5a5Rm+QgyJvku18Ty3yiE9sjoAvv1ACT2YPgQ+18wyvD7Xa74sEIU8pqs9PPe3ab2Gefw9ev5dPgrTUj027I68pm7XPXI1xb6iLLg8l7LjPO6mDj5s9Uu+yaO5vJKUiz6aIK0++7hPPdHzBj4m4po+GjEPPWkckL28GZI+KjYYvlQFhz1J3l2+uLwcPc3Rpz4sIbW+p/YFvqINhz4yDU4+9B9hPuE7/L2HGoa96q3vPYp7BjxqNt+9NGDkvmfYwD0ujTa+/Pntu+K/1L2gtja+IktiPeOFUj7ggpC+oY8zPiQMFD63UIQ+j98mPKnxfT5EBr6+B19yPXJlVT6wtIG9obOavc44hT3nYWs91/YnPrLZHb9KGom+Mt+KvrSX57wuX4a+DD7aPaVKEr2NkQS+1LlZPpxGXb7YKd+9YniAPhqv4r0NPKw9c8k1vidZmr6Hqg89hzTpvr1zJz5jTp4+xed0PprkFb5S2R4+OgjAPRRw7r1CB0a+7tfAvSlte76RQWS+4ENrvl9IAr4BFFe+X4bevf4Blb3j4jC+v7UzPg==")
c5 = _numbers("<f4", (1, 32), "cfITvkvwKb3nEiM7EZAjPt4tQr29J8w9WbcrPZLVz7z+4yC9qEFEvWOHZz0xEa27ZovKPDP0oT0ux4w9AAkNvB+5lzxTerW9BFAOvvg2Fj2ShBM+KYQMPecgBL4MlR8+Yuf5Pc8mQr2nJYU9FQTBved3pD0AVCe9GfSVO2rhJr4=")
c6 = _numbers("<f4", (32, 2), "eTWZvSaKQj53F4k+gm2HPmL+gj7/OzA+d8V9PezjFr4bC6O+FVHpPadRuT0K0oS+/pGIvq/WXb4P9Cs+9scLPnxyoD6siZ4+RmypvhgWaj5GJ2O+Rxp+vi0QPz4jKn89qPOdPrNzSz6bUX8+UkDIPReM6b7g4LY9UMi1vuo5AL7PVu6+fHp1vgdmrr4LC+o9Cgu0vcw+8D0/NE2+oXKCvuiFPr6ySKa+Z2JhPhKekD23VyG+8KqtPkhnZD73tp6+TCzBPipQLb2skyQ+QZ9oPlKJkT425IW7tySYvvRikj63VDa/9/mTPm4TeT6S+po+tLotvlgBgb67A8C8udhmPg==")
c7 = _numbers("<f4", (1, 2), "IBN5PWKKLL4=")
