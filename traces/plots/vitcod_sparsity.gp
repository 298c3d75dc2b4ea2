# `maps` is the name of the attention maps, `sanger` and `spatten` the published figures.
set title 'Attention on the sparse engines: '.maps font ',15'
set xlabel 'cells pruned (%)'
set xrange [57:98]
set ylabel 'times faster (log)'
set logscale y 2
set yrange [0.25:16.5]
set ytics (0.25, 0.5, 1, 2, 4, 8, 16)
set grid ytics lc rgb '#dddddd'
set border 3
set tics nomirror
set key outside right top reverse Left spacing 1.3
plot 1 lc rgb '#888888' notitle, \
     $sweep using 1:2 with linespoints pt 7 lw 2 lc rgb '#2166ac' title 'than a dense map', \
     '' using 1:3 with linespoints pt 5 lw 2 lc rgb '#5aae61' title 'than without reordering', \
     '' using 1:4 with linespoints pt 9 lw 2 lc rgb '#d95f0e' title 'than Sanger', \
     '' using 1:5 with linespoints pt 11 lw 2 lc rgb '#7b3294' title 'than SpAtten', \
     '+' using (90):(sanger) every ::0::0 with points pt 3 ps 2 lc rgb '#000000' \
         title 'published: than Sanger', \
     '+' using (90):(spatten) every ::0::0 with points pt 2 ps 2 lc rgb '#7b3294' \
         title 'published: than SpAtten'
