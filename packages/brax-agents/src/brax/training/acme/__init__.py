"""Running statistics of observations, under the path that users know."""
