# Lines are ours, points as published: columns 2 to 4 and 5 to 7 of each block.
set grid lc rgb '#dddddd'
set border 3
set tics nomirror
set logscale xy
set xtics (128, 256, 512, 1024, 2048, 4096) rotate by -35
set xrange [110:4800]
set xlabel 'tokens'
set format y '%g'
colours = '#2166ac #5aae61 #d95f0e'
set multiplot layout 1,3 title 'What an inference takes, by length' font ',15'
do for [chart=1:3] {
  block = word('$flops $bytes $ratio', chart)
  if (chart == 1) { set key inside left top Left reverse autotitle columnheader; set ylabel 'GFLOP' }
  if (chart == 2) { set key inside right bottom; set ylabel 'GB moved' }
  if (chart == 3) { set key inside right center; set ylabel 'FLOP per byte' }
  plot for [i=2:4] block using 1:i with lines lw 2 lc rgb word(colours, i - 1), \
       for [i=2:4] block using 1:(column(i + 3)) with points pt 7 ps 1.3 lc rgb word(colours, i - 1) notitle, \
       NaN with points pt 7 lc rgb '#555555' title 'published'
}
unset multiplot
