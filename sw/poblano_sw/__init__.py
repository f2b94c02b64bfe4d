"""Programs for the accelerator: assembler, tensor layouts, model loading."""
