package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

// Verify tells whether the request is genuine; if not, respond 401. The body is what was received, not parsed JSON.
func Verify(secret string, header http.Header, body []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	key, malformed := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || malformed != nil || id == "" || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(append([]byte(id+"."+timestamp+"."), body...))
	expected, isValid := []byte("v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))), false
	for _, signature := range strings.Fields(header.Get("webhook-signature")) { // several during a rotation
		isValid = isValid || hmac.Equal([]byte(signature), expected)
	}
	return isValid
}
