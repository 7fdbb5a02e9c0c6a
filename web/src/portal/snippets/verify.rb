require "openssl"

TOLERANCE_SECONDS = 300

# Respond 401 if verify(secret, request.headers, request.raw_post) is false. The body is what was received, not parsed JSON.
def verify(secret, headers, body)
  id = headers["webhook-id"]
  timestamp = headers["webhook-timestamp"]
  signatures = headers["webhook-signature"]
  return false unless id && signatures && timestamp&.match?(/\A\d+\z/)
  return false if (Time.now.to_i - timestamp.to_i).abs > TOLERANCE_SECONDS

  key = secret.delete_prefix("whsec_").unpack1("m")
  digest = OpenSSL::HMAC.digest("SHA256", key, "#{id}.#{timestamp}.".b + body.b)
  expected = "v1,#{[digest].pack("m0")}"
  # There are several signatures while the secret is being rotated; one match is enough.
  signatures.split(" ").any? { |signature| OpenSSL.secure_compare(signature, expected) }
end
