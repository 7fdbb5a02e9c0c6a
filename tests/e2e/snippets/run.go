package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"

	"postrider.example/snippets/webhook"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		fields, header := strings.Split(lines.Text(), "\t"), http.Header{}
		decoded := make([][]byte, len(fields))
		for index, field := range fields {
			decoded[index], _ = base64.StdEncoding.DecodeString(field)
		}
		for index, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			if fields[index+1] != "-" {
				header.Set(name, string(decoded[index+1]))
			}
		}
		fmt.Println(webhook.Verify(string(decoded[0]), header, decoded[4]))
	}
}
