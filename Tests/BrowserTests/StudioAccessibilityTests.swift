import Foundation
import ImprintStudio
import TestSupport
import Testing

/// Keyboard access, accessible names, contrast and sizes of the studio.
@Suite("Studio accessibility", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioAccessibilityTests {
    private struct Node: Decodable, Sendable {
        let role: String
        let name: String

        /// Whether the node is a control, a meter or an image.
        var isControl: Bool {
            [
                "button", "link", "textbox", "combobox", "checkbox", "slider", "tab", "spinbutton", "meter", "tabpanel",
                "tablist", "img", "figure",
            ]
            .contains(role.lowercased())
        }
    }

    private struct Panel: Decodable, Sendable {
        let faint: [String]
        let headings: [Int]
        let overflow: Int
        let small: [String]
        let unnamed: [String]
        let positive: Int
        let live: [String]
    }

    /// An expression that checks the visible panel.
    private static let panel = """
        (() => ({
          faint: \(Browser.faint),
          headings: [...document.querySelectorAll('h1, h2, h3')].filter(one => one.checkVisibility()).map(one => Number(one.tagName[1])),
          overflow: document.scrollingElement.scrollWidth - innerWidth,
          small: [...document.querySelectorAll('button, a.button, select, input:not(.hidden)')].filter(one => one.checkVisibility())
            .filter(one => { const box = one.getBoundingClientRect(); return box.height < 24 || box.width < 24 }).map(one => one.outerHTML),
          unnamed: [...document.querySelectorAll('input, select')].filter(one => !one.labels?.length && !one.getAttribute('aria-label'))
            .concat([...document.querySelectorAll('img:not([alt]), html:not([lang]), button:empty')]).map(one => one.outerHTML),
          positive: document.querySelectorAll('[tabindex]:not([tabindex="0"]):not([tabindex="-1"])').length,
          live: [...document.querySelectorAll('[role=status]')].map(one => one.id),
        }))()
        """

    private struct Seen: Decodable, Sendable {
        let look: Panel
        let teach: Panel
        let history: Panel
        let annotate: Panel
        let lookTree: [Node]
        let teachTree: [Node]
        let historyTree: [Node]
        let annotateTree: [Node]
        let outlined: [String]
    }

    private static let views = [
        Browser.View(), Browser.View(width: 390), Browser.View(isDark: true), Browser.View(width: 390, isDark: true),
    ]

    @Test("All elements of every panel have a name, enough contrast and enough space", arguments: views) func panels(
        view: Browser.View
    ) async throws {
        try await StudioSamples.withStudio { studio, folder in
            var view = view
            view.camera = try StudioSamples.camera([.bright], in: folder)
            let sight: Browser.Sight<Seen> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("document.getElementById('label').textContent === 'Bright'"),
                    .wait("document.getAnimations().length === 0"),
                    .note("open", "document.querySelectorAll('details').forEach(one => { one.open = true })"),
                    .note("look", Self.panel), .accessibility("lookTree"),
                    .click("#tab-teach"), .click("#class-name"), .type("Cup"), .key("Enter"),
                    .wait("document.activeElement.className === 'hold'"),
                    .click(
                        ".hold",
                        until: "parseInt(document.querySelector('#classes .count').textContent) >= 4"),
                    .wait("!document.getElementById('start').disabled"), .click("#start"),
                    .wait("document.getElementById('training-status').dataset.stage === 'learned'"),
                    .wait("document.getAnimations().length === 0"),
                    .note("teach", Self.panel), .accessibility("teachTree"),
                    .click("#tab-history"), .click("#shutter"),
                    .wait("document.querySelectorAll('#pictures li').length === 1"),
                    .wait("document.getAnimations().length === 0"), .note("history", Self.panel),
                    .accessibility("historyTree"),
                    .click("#tab-annotate"), .click("#box-current"), .wait("!document.getElementById('editor').hidden"),
                    .click("#box-add"), .wait("document.activeElement.placeholder === 'Label'"), .type("Cup"),
                    .key("Enter"),
                    .wait("document.getElementById('editor-state').textContent.startsWith('Saved')"),
                    .wait("document.getAnimations().length === 0"), .note("annotate", Self.panel),
                    .accessibility("annotateTree"),
                    .note("outlined", "(document.getElementById('shutter').focus(), [])"), .key("Tab"),
                    .note(
                        "outlined",
                        "[getComputedStyle(document.activeElement).outlineStyle, getComputedStyle(document.activeElement).outlineWidth]"
                    ),
                ])
            let seen = sight.values
            for panel in [seen.look, seen.teach, seen.history, seen.annotate] {
                #expect(
                    panel.faint == [] && panel.unnamed == [] && panel.small == [] && panel.positive == 0
                        && panel.overflow <= 0)
                #expect(panel.headings.first == 1 && panel.headings.count { $0 == 1 } == 1)
                #expect(zip(panel.headings, panel.headings.dropFirst()).allSatisfy { $1 <= $0 + 1 })
                #expect(Set(["said", "spoken", "training-status"]).isSubset(of: panel.live))
            }
            for tree in [seen.lookTree, seen.teachTree, seen.historyTree, seen.annotateTree] {
                let controls = tree.filter(\.isControl)
                #expect(controls.count > 10)
                #expect(controls.filter { $0.name.trimmingCharacters(in: .whitespaces).isEmpty }.map(\.role) == [])
            }
            let names = seen.teachTree.map(\.name)
            #expect(names.contains("Hold to collect examples of Cup") && names.contains("Delete Cup and its examples"))
            #expect(seen.annotateTree.contains { $0.name.hasPrefix("Box 1, Cup: centre, at 35 %, 35 %") })
            #expect(seen.lookTree.contains { $0.role == "meter" && $0.name == "Confidence" })
            #expect(seen.outlined == ["solid", "2px"])
            #expect(sight.console == [])
        }
    }

    private struct Order: Decodable, Sendable {
        struct Stop: Decodable, Sendable {
            let id: String
            let x: Double
            let y: Double
            let section: String
        }
        let tabs: [String]
        let stops: [Stop]
        let skipped: String
    }

    @Test("The keyboard reaches all controls in visual order", arguments: StudioTests.widths) func order(
        width: Int
    ) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(width: width, camera: try StudioSamples.camera([.bright], in: folder))
            let note = """
                (window.stops ??= []).push((() => { const one = document.activeElement, box = (one.labels?.[0]?.classList.contains('button')
                  ? one.labels[0] : one).getBoundingClientRect();
                  return { id: one.id || one.textContent, x: box.x + scrollX, y: box.y + scrollY,
                    section: one.closest('section')?.className ?? 'top' } })())
                """
            let steps = (0..<14).flatMap { _ in [Browser.Step.key("Tab"), .note("length", note)] }
            let selected = "document.querySelector('[role=tab][aria-selected=true]').id"
            let sight: Browser.Sight<Order> = try await StudioSamples.look(
                studio, view,
                [
                    // The label can change from Dark while its confidence is below the minimum of the alternative text.
                    .wait(
                        "document.getElementById('label').textContent === 'Bright' && !document.getElementById('copy').disabled"
                    ),
                    .note("open", "document.querySelectorAll('details').forEach(one => { one.open = true })"),
                ] + steps + [
                    .note("stops", "window.stops"),
                    .note("focus", "document.getElementById('tab-look').focus()"), .key("ArrowRight"),
                    .note("first", "(window.tabs = [\(selected)], 1)"),
                    .key("ArrowRight"), .note("second", "window.tabs.push(\(selected))"), .key("ArrowRight"),
                    .note("third", "window.tabs.push(\(selected))"), .key("End"),
                    .note("fourth", "window.tabs.push(\(selected))"),
                    .note("tabs", "window.tabs"),
                    .note("focus", "document.querySelector('.skip').focus()"), .key("Enter"),
                    .note("skipped", "document.activeElement.id"),
                ])
            let seen = sight.values
            #expect(
                seen.stops.map(\.id) == [
                    "Skip to the results", "shutter", "pause", "file", "shown", "tab-look", "alt-area-title", "copy",
                    "alt-threshold", "filter-area-title", "filter-label", "Add to the filter", "filter-threshold",
                ] + seen.stops.map(\.id).dropFirst(13))
            // Within a section from top to bottom, and from left to right within a row.
            for (one, next) in zip(seen.stops, seen.stops.dropFirst())
            where one.section == next.section && next.id != "Skip to the results" {
                #expect(next.y > one.y - 30 && (next.y > one.y + 10 || next.x > one.x), "\(one.id), \(next.id)")
            }
            #expect(
                seen.tabs == ["tab-teach", "tab-logo", "tab-photos", "tab-history"] && seen.skipped == "panels")
        }
    }

    private struct Forced: Decodable, Sendable {
        let isForced: Bool
        let bar: [String]
        let tab: [String]
        let outlines: [String]
        let box: [String]
        let faint: [String]
    }

    @Test("With forced colours, bars, the chosen tab and the selection are visible", arguments: [false, true])
    func forcedColors(isDark: Bool) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let photo = try StudioSamples.write(.bright, to: folder)
            let style = "(element, pseudo) => getComputedStyle(element, pseudo)"
            let sight: Browser.Sight<Forced> = try await StudioSamples.look(
                studio, Browser.View(isDark: isDark, forcesColors: true),
                [
                    .note("isForced", "matchMedia('(forced-colors: active)').matches"),
                    .choose("#file", photo), .wait("document.querySelectorAll('#top .bar').length > 0"),
                    .note("style", "(window.style = \(style), 1)"),
                    .note(
                        "bar",
                        "['::before', null].map(part => style(document.querySelector('#top .bar'), part).backgroundColor)"
                    ),
                    .note(
                        "tab",
                        "[style(document.getElementById('tab-look'), '::after').backgroundColor, style(document.body).backgroundColor]"
                    ),
                    .note("faint", Browser.faint),
                    .click("#tab-annotate"), .choose("#box-files", photo),
                    .wait("!document.getElementById('editor').hidden"),
                    .click("#box-add"), .wait("document.activeElement.placeholder === 'Label'"),
                    .note(
                        "outlines",
                        "['[aria-current=true]', '.box-list .selected'].map(part => style(document.querySelector(part)).outlineStyle)"
                    ),
                    .note(
                        "box",
                        "[style(document.querySelector('.corner'), '::after').backgroundColor, style(document.querySelector('.corner')).display]"
                    ),
                ])
            let seen = sight.values
            #expect(seen.isForced && seen.bar[0] != seen.bar[1] && seen.tab[0] != seen.tab[1])
            #expect(seen.outlines == ["solid", "solid"] && seen.box == ["rgb(255, 255, 255)", "block"])
            #expect(seen.faint == [] && sight.console == [])
        }
    }

    private struct Stage: Decodable, Sendable {
        let colors: [String]
        let contrast: Double
    }

    @Test("In dark mode, the stage differs from the page and has a visible frame") func darkStage() async throws {
        try await StudioSamples.withStudio { studio, _ in
            let sight: Browser.Sight<Stage> = try await StudioSamples.look(
                studio, Browser.View(isDark: true),
                [
                    .note(
                        "colors",
                        "[document.getElementById('picture'), document.body].map(one => getComputedStyle(one).backgroundColor)"
                    ),
                    .note(
                        "contrast",
                        """
                        (() => { const light = color => color.match(/[\\d.]+/g).slice(0, 3).map(Number).map(c => c / 255)
                            .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
                          const [frame, page] = [getComputedStyle(document.getElementById('picture')).borderTopColor,
                            getComputedStyle(document.body).backgroundColor].map(light);
                          return (Math.max(frame, page) + .05) / (Math.min(frame, page) + .05) })()
                        """),
                ])
            #expect(sight.values.colors.first != sight.values.colors.last)
            // WCAG 2.2, 1.4.11.
            #expect(sight.values.contrast >= 3)
        }
    }
}
