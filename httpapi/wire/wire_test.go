package wire_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// Every row of the table says everything, and says it in the order and within
// the ranges that HTTP and the command line allow.
func TestCodes(t *testing.T) {
	all := wire.Codes()
	if !slices.IsSortedFunc(all, func(a, b wire.CodeInfo) int {
		return cmp.Compare(a.Status, b.Status)
	}) {
		t.Error("codes are not in order of status")
	}
	seen := make(map[wire.Code]bool)
	for _, info := range all {
		if seen[info.Code] {
			t.Errorf("%s stands twice", info.Code)
		}
		seen[info.Code] = true
		if info.Status < 400 || info.Status > 599 {
			t.Errorf("%s: status %d is no error", info.Code, info.Status)
		}
		if info.Exit < wire.ExitUsage || info.Exit > wire.ExitUnknown {
			t.Errorf("%s: exit code %d is none of a failure", info.Code, info.Exit)
		}
		if info.Title == "" || len(info.Text) < 40 || !strings.HasSuffix(info.Text, ".") {
			t.Errorf("%s: title %q, text %q", info.Code, info.Title, info.Text)
		}
		if got, ok := wire.Lookup(info.Code); !ok || got != info {
			t.Errorf("Lookup(%s) = %+v, %v", info.Code, got, ok)
		}
		if unknown := info.Exit == wire.ExitUnknown; unknown != (info.Code == wire.CodeOutcomeUnknown) {
			t.Errorf("%s: exit code %d", info.Code, info.Exit)
		}
	}
	if got, ok := wire.Lookup("no_such_code"); ok || got.Code != wire.CodeInternal {
		t.Errorf("an unknown code gave %+v, %v", got, ok)
	}
}

func TestParseNumber(t *testing.T) {
	for _, s := range []string{"0", "1", "12", "999999999999999"} {
		if v, err := wire.ParseNumber(s); err != nil || wire.FormatNumber(v) != s {
			t.Errorf("ParseNumber(%q) = %d, %v", s, v, err)
		}
	}
	for _, s := range []string{
		"", "05", "00", "+5", "-1", "-0", " 5", "5 ", "5_0", "5.0", "1e3", "0x5", "٥", "5,6",
		"1000000000000000", "18446744073709551615", "18446744073709551616", "99999999999999999999999",
	} {
		if v, err := wire.ParseNumber(s); err == nil {
			t.Errorf("ParseNumber(%q) = %d", s, v)
		}
	}
}

func TestParseETag(t *testing.T) {
	if v, err := wire.ParseETag(wire.FormatETag(12)); err != nil || v != 12 {
		t.Errorf("%d, %v", v, err)
	}
	for _, s := range []string{"", "12", `"12`, `12"`, `"`, `""`, `W/"12"`, `"12", "13"`, `"012"`, `"*"`, "*", `'12'`} {
		if v, err := wire.ParseETag(s); err == nil {
			t.Errorf("ParseETag(%q) = %d", s, v)
		}
	}
}

func TestParseRequestID(t *testing.T) {
	long := strings.Repeat("x", wire.MaxRequestIDBytes)
	for s, want := range map[string]string{
		"a": "a", `"a"`: "a", `a"b`: `a"b`, `"a\"b"`: `a"b`, `"\\"`: `\`, "8e03978e-40d5-43dd-bc93-6894a57f9324": "8e03978e-40d5-43dd-bc93-6894a57f9324",
		long: long, `"` + long + `"`: long,
	} {
		if id, err := wire.ParseRequestID(s); err != nil || id != want {
			t.Errorf("ParseRequestID(%q) = %q, %v; want %q", s, id, err, want)
		}
	}
	for _, s := range []string{
		"", `"`, `""`, `"a`, `"a"b`, `"a";p=1`, `"a\b"`, `"a\`, "a b", `"a b"`, "\x7f", "é", "a\x00", long + "x", `"` + long + `x"`,
	} {
		if id, err := wire.ParseRequestID(s); err == nil {
			t.Errorf("ParseRequestID(%q) = %q", s, id)
		}
	}
}

func FuzzParseRequestID(f *testing.F) {
	for _, s := range []string{"a", `"a"`, `"a\"b"`, `a\b`, `"\\"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := wire.ParseRequestID(s)
		if err != nil {
			return
		}
		if again, err := wire.ParseRequestID(wire.FormatRequestID(id)); err != nil || again != id {
			t.Fatalf("%q → %q → %q, %v", s, id, again, err)
		}
	})
}

// A value comes back byte for byte, whatever its bytes.
func FuzzValue(f *testing.F) {
	f.Add([]byte("text"))
	f.Add([]byte{0xff, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := json.Marshal(wire.MakeValue(data))
		if err != nil {
			t.Fatal(err)
		}
		var v wire.Value
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Bytes(); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%q → %s → %q, %v", data, text, got, err)
		}
	})
}

func TestValueIsGivenOnce(t *testing.T) {
	for _, s := range []string{`{}`, `{"value":"a","valueBase64":"YQ=="}`, `{"value":null}`} {
		var v wire.Value
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatal(err)
		}
		if data, err := v.Bytes(); err == nil {
			t.Errorf("%s gave %q", s, data)
		}
	}
}

func TestFormatTime(t *testing.T) {
	for ms, want := range map[int64]string{0: "", 1: "1970-01-01T00:00:00.001Z", 1_764_000_000_123: "2025-11-24T16:00:00.123Z"} {
		if got := wire.FormatTime(ms); got != want {
			t.Errorf("FormatTime(%d) = %q, want %q", ms, got, want)
		}
	}
}

func TestKeyPath(t *testing.T) {
	for key, want := range map[string]string{
		"app/report": "app/report", "a b/ü%": "a%20b/%C3%BC%25", "app/": "app/", "a?b#c": "a%3Fb%23c",
	} {
		if got := wire.KeyPath(key); got != want {
			t.Errorf("KeyPath(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestMaxNumberIsExactInJSON(t *testing.T) {
	if f := float64(wire.MaxNumber); uint64(f) != wire.MaxNumber || f+1 == f || f > math.Pow(2, 53) {
		t.Errorf("%d is not exact as a float64", uint64(wire.MaxNumber))
	}
}
