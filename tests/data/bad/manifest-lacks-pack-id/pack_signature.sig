Ö¯¨Iwÿw3[Fˆ‰BgütqŠ	Ic7‰ÿÝJZ+µÎq
%N#Ä3Âa]Š<t\½AçoB$~
