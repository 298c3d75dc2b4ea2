# Blue is 345M, orange 1.5B; the lighter ones are of the better case.
set title 'A pass of GPT-2 on four cores by the latency of a hop' font ',15'
set xlabel 'us of a hop'
set xtics (0.1, 0.3, 0.5, 1, 2)
set xrange [0.09:2.2]
set ylabel 'ms a pass'
set ytics (0.2, 0.5, 1, 2, 5, 10, 20)
set format y '%g'
set logscale xy
set grid xtics ytics lt 1 lc rgb '#dddddd'
set border 3
set tics nomirror
set key outside right top reverse Left spacing 1.3 autotitle columnheader
colours = '#2166ac #92c5de #d95f0e #fdae6b'
plot for [i=1:4] '$curve'.i using 1:2 with linespoints pt 7 ps 0.9 lw 2 lc rgb word(colours, i)
