// Receives webhooks, verifies their signatures with the Standard Webhooks library, and prints each event once.
//
// usage: WEBHOOK_SECRET=whsec_… LISTEN=127.0.0.1:8000 receiver
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const maxBodyBytes = 1 << 20

type receiver struct {
	webhook *standardwebhooks.Webhook
	mutex   sync.Mutex
	seen    map[string]bool // a table with a unique key in a real service
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBodyBytes))
	if err != nil {
		http.Error(w, "cannot read the body", http.StatusBadRequest)
		return
	}
	if err := r.webhook.Verify(body, request.Header); err != nil {
		http.Error(w, "invalid signature", http.StatusUnauthorized)
		return
	}
	var event struct{ Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "invalid JSON", http.StatusBadRequest)
		return
	}
	r.process(request.Header.Get("webhook-id"), event.Type)
	w.WriteHeader(http.StatusNoContent)
}

// An event can arrive more than once, always with the same ID.
func (r *receiver) process(id, eventType string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.seen[id] {
		r.seen[id] = true
		fmt.Println(id, eventType)
	}
}

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(os.Getenv("LISTEN"), &receiver{webhook: webhook, seen: map[string]bool{}}))
}
