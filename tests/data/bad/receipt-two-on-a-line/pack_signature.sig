f;t°0—ûrCÓÏ9ê$M,9NêH1÷”³§Üdå5²gšëìO~*l£zsÓOÄdÌD€Aü¬Oº,o
