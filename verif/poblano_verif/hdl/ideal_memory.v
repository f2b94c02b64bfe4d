// The ideal memory of the timing contract: an AXI4 slave with a fixed latency.
//
// Addresses are always accepted. The first beat of a read comes LATENCY cycles after its address
// was accepted, the others follow, beats in order, latencies overlap. A write is answered LATENCY
// cycles after its last beat. Reads and writes share the bus: in a cycle a beat of one of them is
// transferred, and while both have one they take turns. In numbers: `axi__wready` is 0 exactly
// while a read beat is transferred, and no read beat is offered in the cycle after a transfer that
// made a write beat wait. A read beat holds what was written before the cycle that precedes its
// first.
//
// Bursts of any start and beat size are served, INCR only. A beat past SIZE, or of another kind of
// burst, is answered with DECERR; it reads 0 and writes nothing. DEPTH bursts of each direction,
// and DEPTH beats of data before their address, can be waiting; then ready falls.
//
// The back door works at any clock edge, in reset too: with `load` the file NAME.load is read to
// `address`, `length` bytes of it; with `dump` the bytes from `address` on go to the file NAME.dump.
// Bytes that nothing wrote are 0.
module ideal_memory #(
  parameter WIDTH = 16,
  parameter SIZE = 65536,
  parameter LATENCY = 64,
  parameter ADDRESS_WIDTH = 40,
  parameter ID_WIDTH = 1,
  parameter NAME = "memory"
) (
  input clk,
  input rst,

  input [ID_WIDTH-1:0] axi__arid,
  input [ADDRESS_WIDTH-1:0] axi__araddr,
  input [7:0] axi__arlen,
  input [2:0] axi__arsize,
  input [1:0] axi__arburst,
  input axi__arvalid,
  output reg axi__arready,
  output reg [ID_WIDTH-1:0] axi__rid,
  output reg [8*WIDTH-1:0] axi__rdata,
  output reg [1:0] axi__rresp,
  output reg axi__rlast,
  output reg axi__rvalid,
  input axi__rready,

  input [ID_WIDTH-1:0] axi__awid,
  input [ADDRESS_WIDTH-1:0] axi__awaddr,
  input [7:0] axi__awlen,
  input [2:0] axi__awsize,
  input [1:0] axi__awburst,
  input axi__awvalid,
  output reg axi__awready,
  input [8*WIDTH-1:0] axi__wdata,
  input [WIDTH-1:0] axi__wstrb,
  input axi__wlast,
  input axi__wvalid,
  output axi__wready,
  output reg [ID_WIDTH-1:0] axi__bid,
  output reg [1:0] axi__bresp,
  output reg axi__bvalid,
  input axi__bready,

  output reg [63:0] read_beats,
  output reg [63:0] write_beats,

  input load,
  input dump,
  input [31:0] address,
  input [31:0] length
);
  localparam [8:0] DEPTH = 256;
  localparam [1:0] OKAY = 0, DECERR = 3, INCR = 1;

  reg [7:0] bytes [0:SIZE-1];
  reg [63:0] cycle;

  // Whether a beat at an address must be refused.
  function refused(input [ADDRESS_WIDTH-1:0] start, input [1:0] burst);
    refused = burst != INCR || start >= SIZE;
  endfunction

  function [ADDRESS_WIDTH-1:0] next(input [ADDRESS_WIDTH-1:0] start, input [2:0] size);
    next = ((start >> size) + 1) << size;
  endfunction

  // Reads: a ring of accepted bursts; the oldest one's address and length follow its beats.
  reg [63:0] read_due [0:255];
  reg [ID_WIDTH-1:0] read_id [0:255];
  reg [ADDRESS_WIDTH-1:0] read_address [0:255];
  reg [7:0] read_length [0:255];
  reg [2:0] read_size [0:255];
  reg [1:0] read_burst [0:255];
  reg [8:0] read_head, read_tail;

  // Writes: a ring of accepted bursts, of which some have their data, and a ring of data.
  reg [63:0] write_due [0:255];
  reg [ID_WIDTH-1:0] write_id [0:255];
  reg [ADDRESS_WIDTH-1:0] write_address [0:255];
  reg [7:0] write_length [0:255];
  reg [2:0] write_size [0:255];
  reg [1:0] write_burst [0:255];
  reg [1:0] write_response [0:255];
  reg [8:0] write_head, write_filled, write_tail;
  reg [8*WIDTH-1:0] beat_data [0:255];
  reg [WIDTH-1:0] beat_strobe [0:255];
  reg [8:0] beat_head, beat_tail;

  // Only what is assigned with <= leaves the module: no other block sees this one half done.
  reg has_room;
  wire reads = axi__rvalid & axi__rready;
  assign axi__wready = has_room & ~reads;

  integer lane, index, file, count;
  reg [511:0] chunk;
  reg [31:0] place;
  reg [7:0] at;
  reg offers;

  always @(posedge clk) begin
    cycle = cycle + 1;
    if (rst) begin
      read_head = 0;
      read_tail = 0;
      write_head = 0;
      write_filled = 0;
      write_tail = 0;
      beat_head = 0;
      beat_tail = 0;
      axi__arready <= 0;
      axi__awready <= 0;
      has_room <= 0;
      axi__rvalid <= 0;
      axi__bvalid <= 0;
      read_beats <= 0;
      write_beats <= 0;
    end else begin
      if (axi__arvalid & axi__arready) begin
        at = read_tail[7:0];
        read_due[at] = cycle + LATENCY - 1;
        read_id[at] = axi__arid;
        read_address[at] = axi__araddr;
        read_length[at] = axi__arlen;
        read_size[at] = axi__arsize;
        read_burst[at] = axi__arburst;
        read_tail = read_tail + 1;
      end
      at = read_head[7:0];
      if (reads) begin
        read_beats <= read_beats + 1;
        read_address[at] = next(read_address[at], read_size[at]);
        read_length[at] = read_length[at] - 1;
        if (axi__rlast) begin
          read_head = read_head + 1;
          at = read_head[7:0];
        end
      end
      if (reads | ~axi__rvalid) begin
        offers = read_head != read_tail && read_due[at] <= cycle
            && !(reads & axi__wvalid & has_room);
        axi__rvalid <= offers;
        if (offers) begin
          axi__rid <= read_id[at];
          axi__rlast <= read_length[at] == 0;
          if (refused(read_address[at], read_burst[at])) begin
            axi__rresp <= DECERR;
            axi__rdata <= 0;
          end else begin
            axi__rresp <= OKAY;
            place = read_address[at] / WIDTH * WIDTH;
            for (lane = 0; lane < WIDTH; lane = lane + 1)
              axi__rdata[8*lane +: 8] <= bytes[place + lane];
          end
        end
      end

      if (axi__awvalid & axi__awready) begin
        at = write_tail[7:0];
        write_id[at] = axi__awid;
        write_address[at] = axi__awaddr;
        write_length[at] = axi__awlen;
        write_size[at] = axi__awsize;
        write_burst[at] = axi__awburst;
        write_response[at] = OKAY;
        write_tail = write_tail + 1;
      end
      if (axi__wvalid & axi__wready) begin
        write_beats <= write_beats + 1;
        beat_data[beat_tail[7:0]] = axi__wdata;
        beat_strobe[beat_tail[7:0]] = axi__wstrb;
        beat_tail = beat_tail + 1;
      end
      while (write_filled != write_tail && beat_head != beat_tail) begin
        at = write_filled[7:0];
        if (refused(write_address[at], write_burst[at]))
          write_response[at] = DECERR;
        else begin
          place = write_address[at] / WIDTH * WIDTH;
          for (lane = 0; lane < WIDTH; lane = lane + 1)
            if (beat_strobe[beat_head[7:0]][lane])
              bytes[place + lane] = beat_data[beat_head[7:0]][8*lane +: 8];
        end
        beat_head = beat_head + 1;
        write_address[at] = next(write_address[at], write_size[at]);
        if (write_length[at] == 0) begin
          write_due[at] = cycle + LATENCY - 1;
          write_filled = write_filled + 1;
        end
        write_length[at] = write_length[at] - 1;
      end
      if (axi__bvalid & axi__bready)
        write_head = write_head + 1;
      if (axi__bready | ~axi__bvalid) begin
        at = write_head[7:0];
        axi__bvalid <= write_head != write_filled && write_due[at] <= cycle;
        axi__bid <= write_id[at];
        axi__bresp <= write_response[at];
      end

      axi__arready <= read_tail != (read_head ^ DEPTH);
      axi__awready <= write_tail != (write_head ^ DEPTH);
      has_room <= beat_tail != (beat_head ^ DEPTH);
    end

    if (load) begin
      file = $fopen({NAME, ".load"}, "rb");
      count = $fread(bytes, file, address, length);
      $fclose(file);
    end
    if (dump) begin
      file = $fopen({NAME, ".dump"}, "wb");
      for (index = 0; index + 64 <= length; index = index + 64) begin
        for (lane = 0; lane < 64; lane = lane + 1)
          chunk[8*lane +: 8] = bytes[address + index + lane];
        $fwrite(file, "%u", chunk);
      end
      while (index < length) begin
        $fwrite(file, "%c", bytes[address + index]);
        index = index + 1;
      end
      $fclose(file);
    end
  end

  initial begin
    cycle = 0;
    axi__arready = 0;
    axi__awready = 0;
    has_room = 0;
    axi__rvalid = 0;
    axi__bvalid = 0;
    for (index = 0; index < SIZE; index = index + 1)
      bytes[index] = 0;
  end
endmodule
