"""Tools beside Braid."""
