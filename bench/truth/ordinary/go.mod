module ordinary

go 1.21
