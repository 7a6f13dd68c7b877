package httpapi

import (
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// problemPage explains one code, or lists all of them: what the type of a
// problem leads to.
func (h *Handler) problemPage(w http.ResponseWriter, c *call) error {
	if c.arg == "" {
		writePage(w, "Problems", problemIndex())
		return nil
	}
	info, known := wire.Lookup(wire.Code(c.arg))
	if !known {
		return refuse(wire.CodeRouteNotFound)
	}
	writePage(w, info.Title, fmt.Sprintf(
		"<p><code>%s</code> · HTTP status %d · exit code %d</p>\n<p>%s</p>\n<p><a href=%q>All problems</a></p>\n",
		info.Code, info.Status, info.Exit, html.EscapeString(info.Text), wire.RouteProblems))
	return nil
}

func problemIndex() string {
	var page strings.Builder
	page.WriteString("<table>\n<tr><th>Status<th>Code<th>Exit<th>Meaning\n")
	for _, info := range wire.Codes() {
		fmt.Fprintf(&page, "<tr><td>%d<td><a href=%q><code>%s</code></a><td>%d<td>%s\n",
			info.Status, wire.RouteProblems+string(info.Code), info.Code, info.Exit, html.EscapeString(info.Title))
	}
	page.WriteString("</table>\n")
	return page.String()
}

func writePage(w http.ResponseWriter, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>%[1]s · fencekv</title>\n<h1>%[1]s</h1>\n%[2]s</html>\n",
		html.EscapeString(title), body)
}
