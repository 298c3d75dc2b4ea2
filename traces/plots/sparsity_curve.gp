# `model`, `machine`, and `quality`: what the first two lines are. Sparsities, qualities and costs in percent.
set title model.' on '.machine.' by pruned attention' font ',15' noenhanced
set xlabel 'cells pruned (%)'
set xrange [-2:100]
set ylabel '%'
set yrange [0:105]
set grid lc rgb '#dddddd'
set border 3
set tics nomirror
set key outside right top reverse Left spacing 1.3
plot $curve using 1:2 with linespoints pt 7 lw 2 lc rgb '#2166ac' title quality, \
     '' using 1:3 with linespoints pt 6 dt 2 lw 2 lc rgb '#2166ac' title 'with a random mask', \
     '' using 1:4 with linespoints pt 5 lw 2 lc rgb '#5aae61' title 'cycles, dense: 100', \
     '' using 1:5 with linespoints pt 9 lw 2 lc rgb '#d95f0e' title 'cycles of attention', \
     '' using 1:6 with linespoints pt 11 lw 2 lc rgb '#888888' title 'energy'
