# ruby run.rb FILE: FILE has the verify() that is called.
load ARGV[0]
STDIN.each_line(chomp: true) do |line|
  secret, id, timestamp, signature, body = line.split("\t", -1).map { |field| field.unpack1("m") unless field == "-" }
  headers = { "webhook-id" => id, "webhook-timestamp" => timestamp, "webhook-signature" => signature }
  puts verify(secret, headers.compact, body)
end
