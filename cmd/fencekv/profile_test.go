package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// An operator who asks for profiles gets them, at that address alone.
func TestServeProfiles(t *testing.T) {
	address, stop, err := serveProfiles("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get("http://" + address + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || !strings.Contains(string(text), "TestServeProfiles") {
		t.Errorf("profile of goroutines: %v, %.200s", err, text)
	}
	if _, _, err := serveProfiles(address); err == nil {
		t.Error("a second listener at the same address")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
