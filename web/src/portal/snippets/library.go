// go get github.com/standard-webhooks/standard-webhooks/libraries
package webhook

import (
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Verify tells whether the request is genuine; if not, respond 401. The body is what was received, not parsed JSON.
func Verify(secret string, header http.Header, body []byte) bool {
	verifier, err := standardwebhooks.NewWebhook(secret)
	return err == nil && verifier.Verify(body, header) == nil
}
