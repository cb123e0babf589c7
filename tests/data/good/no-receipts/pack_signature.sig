©wòÆ^moçTXaŸ>c;xSgÏu¶âÕŠkM c×loBú#ïˆzŸ’åáöInå­é
â^I8