"""What brings commands to engines: fetch from L1, queues, semaphores."""
