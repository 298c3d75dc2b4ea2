# Blue is 345M, orange 1.5B; the lighter ones are of the better case.
set title 'A pass of GPT-2 by cores' font ',15'
set xlabel 'cores'
set xtics (1, 2, 4, 8, 16)
set xrange [0.9:18]
set yrange [0.35:25]
set ylabel 'ms a pass'
set ytics (0.2, 0.5, 1, 2, 5, 10, 20)
set format y '%g'
set logscale xy
set grid xtics ytics lt 1 lc rgb '#dddddd'
set border 3
set tics nomirror
set key outside right top reverse Left spacing 1.3 autotitle columnheader
colours = '#2166ac #d95f0e #2166ac #d95f0e #92c5de #fdae6b #92c5de #fdae6b'
dashes = '1 1 2 2 1 1 2 2'
plot for [i=1:8] '$curve'.i using 1:2 with linespoints pt 7 ps 0.9 lw 2 \
         dt int(word(dashes, i)) lc rgb word(colours, i), \
     $published using 1:2 with points pt 3 ps 2 lc rgb '#000000'
