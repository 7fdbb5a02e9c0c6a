using System;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

public static class Webhook
{
    const long ToleranceSeconds = 300;

    /// <summary>Respond 401 if Verify(secret, name => Request.Headers[name], rawBody) is false.</summary>
    public static bool Verify(string secret, Func<string, string> header, byte[] body)
    {
        string id = header("webhook-id"), timestamp = header("webhook-timestamp"), signatures = header("webhook-signature");
        if (string.IsNullOrEmpty(id) || signatures == null || !long.TryParse(timestamp, out long seconds)) return false;
        long now = DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        if (seconds < now - ToleranceSeconds || seconds > now + ToleranceSeconds) return false;
        using (var mac = new HMACSHA256(Convert.FromBase64String(secret.Replace("whsec_", ""))))
        {
            byte[] message = Encoding.UTF8.GetBytes(id + "." + timestamp + ".").Concat(body).ToArray();
            string expected = "v1," + Convert.ToBase64String(mac.ComputeHash(message));
            return signatures.Split(' ').Any(signature => IsEqual(signature, expected)); // several during a rotation
        }
    }

    /// <summary>Takes the same time wherever they differ.</summary>
    static bool IsEqual(string left, string right) =>
        left.Length == right.Length && left.Zip(right, (a, b) => a ^ b).Aggregate(0, (all, each) => all | each) == 0;
}
