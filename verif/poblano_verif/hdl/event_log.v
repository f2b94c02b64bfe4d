// Writes a line of the file NAME.txt for every cycle in which a queue issues or completes a
// command: the number of the cycle, and the bits `issued` and `completed` as hexadecimal numbers.
// Cycle n begins with the n-th rising edge of the clock since the simulation began, from 0.
module event_log #(
  parameter QUEUES = 3,
  parameter NAME = "events"
) (
  input clk,
  input rst,
  input [QUEUES-1:0] issued,
  input [QUEUES-1:0] completed
);
  integer file;
  reg [63:0] cycle;

  initial begin
    file = $fopen({NAME, ".txt"}, "w");
    cycle = 0;
  end

  // An edge ends the cycle before.
  always @(posedge clk) begin
    if (!rst && (issued != 0 || completed != 0)) begin
      $fwrite(file, "%0d %h %h\n", cycle - 64'd1, issued, completed);
      $fflush(file);
    end
    cycle <= cycle + 1;
  end
endmodule
