package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const maxHello = 1 << 20 // bytes of an answer to a greeting

func greetHTTP(client *http.Client) func(context.Context, string) (Hello, error) {
	return func(ctx context.Context, url string) (hello Hello, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/v1/peer", nil)
		if err != nil {
			return hello, err
		}
		return hello, exchange(client, request, &hello)
	}
}

func askJoinHTTP(client *http.Client) func(context.Context, string, Joiner) (Joined, error) {
	return func(ctx context.Context, url string, joiner Joiner) (joined Joined, err error) {
		body, err := json.Marshal(joiner)
		if err != nil {
			return joined, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(url, "/")+"/v1/cluster/members", bytes.NewReader(body))
		if err != nil {
			return joined, err
		}
		request.Header.Set("Content-Type", "application/json")
		return joined, exchange(client, request, &joined)
	}
}

// exchange sends request and decodes a 2xx answer. A 409 is an *Error with
// reason Conflict: asking again is no use.
func exchange(client *http.Client, request *http.Request, answer any) error {
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHello))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", request.URL, err)
	}
	if response.StatusCode/100 != 2 {
		err := fmt.Errorf("%s answered %s: %s", request.URL, response.Status, bytes.TrimSpace(body))
		if response.StatusCode == http.StatusConflict {
			return &Error{Reason: Conflict, Err: err}
		}
		return err
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("answer of %s: %w", request.URL, err)
	}
	return nil
}
