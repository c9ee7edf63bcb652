"""Draws of the generators."""


class Draw:
    """Lehmer's generator (Park and Miller): the same draws on every machine."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = self.state * 48271 % 2147483647
        return self.state % n

    def spread(self, low, high):
        """An integer whose magnitude, not its value, is uniform."""
        bits = low.bit_length() + self.below(high.bit_length() - low.bit_length() + 1)
        v = (1 << (bits - 1)) + self.below(1 << (bits - 1))
        return min(max(v, low), high)
