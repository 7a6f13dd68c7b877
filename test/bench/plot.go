package main

import (
	"image/color"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

var (
	ours   = color.RGBA{R: 0x1f, G: 0x6f, B: 0xb4, A: 0xff}
	theirs = color.RGBA{R: 0xb0, G: 0xb0, B: 0xb0, A: 0xff}
)

// plot draws one picture for each kind of work: operations a second by number of
// clients, both stores side by side.
func (m *measured) plot(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, cell := range cells {
		p := plot.New()
		p.Title.Text = cell.kind
		p.X.Label.Text = "clients"
		p.Y.Label.Text = "operations a second"
		p.Y.Min = 0
		p.Legend.Top, p.Legend.Left = true, true
		var names []string
		for _, clients := range cell.clients {
			names = append(names, strconv.Itoa(clients))
		}
		p.NominalX(names...)
		width := vg.Points(22)
		for i, side := range []struct {
			name  string
			color color.Color
		}{{"fencekv", ours}, {"etcd", theirs}} {
			var values plotter.Values
			for _, clients := range cell.clients {
				values = append(values, median(each(m.runs[side.name][work{kind: cell.kind, clients: clients}.cell()], perSecond)))
			}
			bars, err := plotter.NewBarChart(values, width)
			if err != nil {
				return err
			}
			bars.Color, bars.LineStyle.Width = side.color, 0
			bars.Offset = width * vg.Length(2*i-1) / 2
			p.Add(bars)
			p.Legend.Add(side.name, bars)
		}
		if err := p.Save(14*vg.Centimeter, 8*vg.Centimeter, picture(dir, cell.kind)); err != nil {
			return err
		}
	}
	return nil
}

// picture is the file of a plot.
func picture(dir, title string) string {
	return filepath.Join(dir, strings.NewReplacer(" + ", "-", " ", "-").Replace(title)+".svg")
}
