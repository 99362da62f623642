"""Running statistics of observations, under the path of Google's brax."""
