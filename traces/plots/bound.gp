# `model` and `machine` are their names; $machine is the mapping's point.
set title model.': traffic with memory by capacity on chip'
set xlabel 'scratchpad and accumulator, KiB'
set ylabel 'MB per inference'
set logscale xy 2
set logscale y 10
set yrange [*<1:]
set grid lc rgb '#dddddd'
set border 3
set tics nomirror
set key top right
plot $curve using 1:2 with linespoints lw 2 pt 7 lc rgb '#2166ac' title 'least of any mapping', \
     $machine using 1:2 with points pt 5 ps 2 lc rgb '#d95f0e' title 'as mapped on '.machine
