module queue

go 1.22
