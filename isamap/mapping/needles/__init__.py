"""Instructions, and compositions of them, as statements to search for."""
