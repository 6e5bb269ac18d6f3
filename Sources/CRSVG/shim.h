// librsvg is used only by CImprintCodecs: its headers need macros that Swift cannot import.
