# Lines are ours, points as published.
set title 'Latency by the analytical model' font ',15'
set xlabel 'tokens'
set ylabel 'latency, BERT-Base of 128 tokens: 1'
set grid lc rgb '#dddddd'
set border 3
set tics nomirror
set logscale xy
set xtics (128, 256, 512, 1024, 2048, 4096)
set xrange [110:4800]
set format y '%g'
set key inside left top Left reverse autotitle columnheader
colours = '#2166ac #5aae61 #d95f0e'
plot for [i=2:4] $latency using 1:i with lines lw 2 lc rgb word(colours, i - 1), \
     for [i=2:4] '' using 1:(column(i + 3)) with points pt 7 ps 1.3 lc rgb word(colours, i - 1) notitle, \
     NaN with points pt 7 lc rgb '#555555' title 'published'
