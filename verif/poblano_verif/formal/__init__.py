"""What is proved of the hardware for every input, by k-induction or for a number of cycles."""
