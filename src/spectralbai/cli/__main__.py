from spectralbai.cli import main

main()
