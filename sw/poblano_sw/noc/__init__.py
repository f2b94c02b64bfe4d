"""A model of the network on chip that is equal to the hardware cycle by cycle."""
