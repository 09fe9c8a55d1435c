"""How many iterations one instruction computes, and what its operands then hold."""
