package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// sheet is what a person sees of an answer: a table under a head, or, without a
// head, names and values below each other, those without a value left out.
type sheet struct {
	head []string
	rows [][]string
}

// show prints an answer: as the server sent it, or as the sheet view makes of
// it once it is decoded into body.
func (a *app) show(answered []byte, body any, view func() sheet) error {
	if a.flags.output == asJSON {
		_, err := fmt.Fprintf(a.stdout, "%s\n", strings.TrimRight(string(answered), "\n"))
		return err
	}
	if err := json.Unmarshal(answered, body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return view().print(a.stdout)
}

// showAs is show for a body this program put together.
func (a *app) showAs(body any, view func() sheet) error {
	if a.flags.output != asJSON {
		return view().print(a.stdout)
	}
	return json.NewEncoder(a.stdout).Encode(body)
}

func (s sheet) print(w io.Writer) error {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatUpper
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	if s.head != nil {
		t.AppendHeader(cells(s.head))
	}
	for _, row := range s.rows {
		if s.head == nil && row[1] == "" {
			continue
		}
		t.AppendRow(cells(row))
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

func cells(row []string) table.Row {
	r := make(table.Row, len(row))
	for i, cell := range row {
		r[i] = printable(cell)
	}
	return r
}

// printable returns s, quoted if a terminal could take part of it for a command.
func printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// number shows n, and nothing for 0: in the answers a zero is an absent fact.
func number[N int | int64 | uint64](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// duration shows milliseconds, and nothing for 0.
func duration(ms int64) string {
	if ms == 0 {
		return ""
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

// mark shows a truth, and nothing for its opposite.
func mark(b bool, word string) string {
	if b {
		return word
	}
	return ""
}
