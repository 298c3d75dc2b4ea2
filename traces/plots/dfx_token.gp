units = 'matrix vector DMA ring'
colours = '#888888 #5aae61 #2166ac #92c5de #762a83 #b2182b #dfc27d'
set border 1
set tics nomirror
set yrange [5 * cores - 0.5:-1]
set ytics scale 0
do for [c=0:cores-1] {
  do for [u=0:3] { set ytics add (sprintf('core %d %s', c, word(units, u + 1)) 5 * c + u) }
}
set lmargin 16
set multiplot layout 2,1
set key outside top center horizontal noinvert
set title 'A token of GPT-2 345M on four cores' font ',15'
set xlabel 'us since the token began'
# A border of one pixel keeps short instructions visible.
plot for [i=0:6] sprintf('$phase%d', i) using 1:(5 * $3 + $4):1:2:(5 * $3 + $4 - 0.4):(5 * $3 + $4 + 0.4) \
  with boxxyerror lc rgb word(colours, i + 1) fs solid border lc rgb word(colours, i + 1) \
  title word(names, i + 1)
unset key
set title 'Its second layer'
set xrange [from:to]
plot for [i=0:6] sprintf('$phase%d', i) using 1:(5 * $3 + $4):1:2:(5 * $3 + $4 - 0.4):(5 * $3 + $4 + 0.4) \
  with boxxyerror lc rgb word(colours, i + 1) fs solid border lc rgb word(colours, i + 1) notitle
unset multiplot
