"""One Brax plugin of every kind."""
