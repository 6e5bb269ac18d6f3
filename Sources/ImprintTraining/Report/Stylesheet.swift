extension Page {
    /// The style sheet of pages.
    ///
    /// Series also differ without hue: by lightness, and by filled or hollow points.
    package static let style = """
        :root { color-scheme: light dark; --ink: #1c2430; --soft: #566070; --paper: #fdfcfa; --panel: #f4f1eb; --faint: #d9d6d0;
          --first: #8a5a2b; --second: #2b6a8a; --hit: 43 106 138; --miss: 190 84 30 }
        @media screen and (prefers-color-scheme: dark) {
          :root { --ink: #e6e3dd; --soft: #a3a8b0; --paper: #16191d; --panel: #1f2328; --faint: #3a3f46;
            --first: #d9a066; --second: #6bb5d9; --hit: 76 158 200; --miss: 214 110 52 }
        }
        * { box-sizing: border-box }
        body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
          margin: 2rem auto 4rem; padding: 0 1.25rem; -webkit-text-size-adjust: 100% }
        h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere }
        h2 { font-size: 1.2rem; line-height: 1.3; margin: 3rem 0 .75rem; overflow-wrap: anywhere }
        h3 { font-size: 1rem; margin: 2rem 0 .25rem }
        p { margin: .5rem 0; max-width: 44rem } a { color: inherit }
        .kind { color: var(--soft); font-size: .9rem; margin: 0 } .more, .caption { color: var(--soft); font-size: .85rem }
        .advice { color: var(--soft); margin: .3rem 0 1rem }
        .figure { font-size: 2.4rem; margin: .5rem 0 } .figure span { font-size: 1rem }
        .head { display: flex; flex-wrap: wrap; gap: 1rem 3rem; align-items: flex-end; margin: 1.5rem 0 0 }
        .score { font-size: 4rem; line-height: 1; font-weight: 650; letter-spacing: -.02em; margin: 0;
          font-variant-numeric: tabular-nums } .score + p { margin: .4rem 0 0 }
        dl { display: flex; flex-wrap: wrap; gap: .6rem 2rem; margin: 0 } dt { color: var(--soft); font-size: .85rem }
        dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums }
        nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; margin: 1.75rem 0 0; padding: .6rem 0;
          border: solid var(--faint); border-width: 1px 0; font-size: .9rem }
        figure { margin: 0 }
        .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1.5rem 2.5rem }
        .multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(13rem, 100%), 1fr)); gap: 1.25rem 2rem }
        .chart { min-width: 0 } .chart figcaption { display: flex; flex-wrap: wrap; gap: 0 1rem; margin-bottom: .25rem;
          font-size: .9rem; overflow-wrap: anywhere }
        .chart .caption { margin: .1rem 0 0 } .multiples .chart { max-width: 20rem } .note { align-self: center; font-size: .95rem }
        svg { display: block; width: 100%; height: auto }
        svg text { font: 11px system-ui, sans-serif; font-variant-numeric: tabular-nums } .tick { fill: var(--soft) }
        .end { text-anchor: end } .middle { text-anchor: middle } .grid { stroke: var(--faint); stroke-width: .75 }
        .line { fill: none; stroke-width: 1.75; stroke-linejoin: round }
        .training { --hue: var(--first) } .validation { --hue: var(--second) } .rate { --hue: var(--soft) }
        .line, svg circle { stroke: var(--hue) } svg circle { fill: var(--hue) }
        .training circle { fill: var(--paper); stroke-width: 1.25 }
        .key { color: var(--soft) } .key::before { content: ""; display: inline-block; width: .6rem; height: .6rem; border-radius: 50%;
          border: 2px solid var(--hue); margin-right: .4rem } .key.validation::before { background: var(--hue) }
        .best, .ideal { stroke: var(--soft); stroke-dasharray: 4 4; stroke-width: 1 }
        .chosen circle { fill: none; stroke: var(--ink); stroke-width: 2 }
        .reliability { --hue: var(--second) } .reliability circle { fill-opacity: .75 } .whisker { stroke: var(--second); stroke-width: 1.5 }
        table { border-collapse: collapse; width: 100% }
        th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--faint); vertical-align: top;
          overflow-wrap: anywhere }
        th { font-weight: 600 } tbody th { white-space: nowrap } 
        thead th { color: var(--soft); font-size: .85rem; font-weight: 500; vertical-align: bottom; white-space: nowrap }
        .scroll { overflow-x: auto } .scroll:focus-visible, a:focus-visible { outline: 2px solid var(--second); outline-offset: 2px }
        .scroll th, .scroll td { overflow-wrap: normal }
        .hidden { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden }
        .confusion { width: auto; min-width: min(100%, 24rem); font-variant-numeric: tabular-nums }
        .confusion td { text-align: center; vertical-align: middle; min-width: 3rem; padding: .3rem .45rem; line-height: 1.2;
          border: 2px solid var(--paper); background: rgb(var(--hue) / var(--shade)) }
        .confusion th { max-width: 14rem; white-space: normal; overflow-wrap: break-word; vertical-align: middle; border: 0 }
        .confusion th:first-child { position: sticky; left: 0; background: var(--paper) }
        .confusion thead th { text-align: center; vertical-align: bottom; padding: 0 .45rem .4rem; max-width: 11rem }
        .confusion td b { font-weight: 600; display: block } .confusion small { font-size: .75rem; display: block }
        .confusion .hit { --hue: var(--hit) } .confusion .miss { --hue: var(--miss) } .confusion .other { --hue: 128 128 128 }
        .confusion .none { background: var(--panel); color: var(--soft) } .confusion .none b { font-weight: 400 }
        .confusion .sum { background: none; color: var(--soft) } .confusion tfoot th { color: var(--soft); font-weight: 500 }
        .confusion.upright thead span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 9rem; text-align: left }
        .confusion.upright thead th + th { padding: 0 0 .4rem }
        .confusion.upright td { min-width: 2.4rem; padding: .2rem } .confusion.upright small { font-size: .65rem }
        .numbers { font-variant-numeric: tabular-nums } .numbers td, .numbers thead th + th { text-align: right; white-space: nowrap }
        .numbers th { max-width: 18rem; white-space: normal; overflow-wrap: break-word }
        .numbers tfoot td, .numbers tfoot th { color: var(--soft); font-weight: 500; border-bottom: 0 }
        .bars { display: grid; grid-template-columns: minmax(4rem, max-content) 1fr max-content; gap: .4rem .8rem; align-items: center }
        .bars span { overflow-wrap: anywhere; font-variant-numeric: tabular-nums } .bar { display: flex; height: .9rem }
        .bar i { background: var(--first); height: 100% } .bar i + i { background: var(--second) }
        .contents { columns: 2 18rem; padding: 0; list-style: none } .contents li { display: flex; gap: .6rem } .contents b { min-width: 2.6rem }
        .photos, .groups { display: flex; flex-wrap: wrap; gap: .8rem; align-items: flex-start }
        .group { display: flex; flex-wrap: wrap; gap: .6rem; padding: .6rem; border: 1px solid var(--faint); border-radius: .4rem }
        .photos figure, .groups figure { font-size: .8rem; line-height: 1.3; max-width: 100%; min-width: 5.5rem }
        .photos figcaption, .groups figcaption { overflow-wrap: anywhere; margin-top: .2rem; width: 0; min-width: 100% }
        .photo { position: relative; display: block; width: max-content; max-width: 100% }
        .photo img { display: block; width: auto; height: 7rem; max-width: 100%; object-fit: cover; background: var(--faint) }
        .crop::after { content: ""; position: absolute; inset: 0; margin: auto; aspect-ratio: 1; border: 2px solid #fff; outline: 1px solid #000 }
        .wide::after { height: 100% } .tall::after { width: 100% }
        .gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(18rem, 100%), 1fr)); gap: 1.75rem 1.5rem }
        .gallery figure { font-size: .85rem; line-height: 1.35; min-width: 0 } .gallery figcaption { margin-top: .4rem; overflow-wrap: anywhere }
        .gallery figcaption p { margin: 0 } .gallery .file { color: var(--soft) }
        .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 2px } .pair img { display: block; width: 100%; height: auto; background: var(--panel) }
        .boxed { position: relative; display: block; overflow: hidden; align-self: start } .boxed svg { position: absolute; inset: 0; height: 100% }
        .boxed rect { fill: none; stroke: #4cc38a; stroke-width: 1.5; vector-effect: non-scaling-stroke } .boxed .detection { stroke: #4c9eff }
        .boxed .mistake { stroke: #ff6b4a; stroke-width: 2.5 } .boxed .under { stroke: #000; stroke-width: 3.5; stroke-opacity: .55 }
        .boxed .under.mistake { stroke-width: 5 } .box-key::before { content: ""; display: inline-block; width: .8rem; height: .6rem;
          border: 2px solid #2f9e6a; margin-right: .35rem } .box-key.detection::before { border-color: #2f7fe0 }
        .box-key.mistake::before { border-color: #e0502f; border-width: 3px }
        .missing { grid-column: 1 / -1; display: grid; place-items: center; min-height: 8rem; padding: 1rem; background: var(--panel);
          color: var(--soft); text-align: center; overflow-wrap: anywhere }
        .ramp { display: flex; align-items: center; gap: .6rem; color: var(--soft); font-size: .85rem; margin: .75rem 0 1.25rem }
        .ramp i { width: 8rem; height: .6rem; flex: none }
        pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); padding: .8rem 1rem; border-radius: .3rem;
          font: .85rem/1.5 ui-monospace, monospace; margin: .5rem 0 }
        @media (max-width: 30rem) {
          body { padding: 0 1rem; margin-top: 1.25rem } .score { font-size: 3.25rem }
          tbody th { white-space: normal; overflow-wrap: break-word; min-width: 4.5rem }
          .numbers { font-size: .85rem } .numbers td, .numbers th { padding-right: .45rem } .numbers th { max-width: 8rem; min-width: 0 }
          .confusion th { max-width: 8rem } .photo img { height: 5.5rem }
        }
        @media print {
          :root { color-scheme: light; --paper: #fff } * { print-color-adjust: exact; -webkit-print-color-adjust: exact }
          body { margin: 0; max-width: none; font-size: 11pt } nav { display: none } .scroll { overflow: visible }
          figure, tr, .note, .head, .confusion, pre { break-inside: avoid } h2, h3, h3 + p, thead { break-after: avoid }
          tfoot { display: table-row-group }
          .charts { grid-template-columns: 1fr 1fr } .gallery { grid-template-columns: repeat(3, 1fr) }
          .confusion th { max-width: none; overflow-wrap: anywhere } .confusion { min-width: 0 }
          .confusion.upright { font-size: 7pt } .confusion.upright td { min-width: 0; padding: 1pt }
          .confusion.upright th { max-width: 6rem } .confusion.upright small { font-size: 5.5pt }
          .multiples { grid-template-columns: repeat(3, 1fr) } h2 { margin-top: 1.75rem }
        }
        """
}
