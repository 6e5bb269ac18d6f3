import Foundation
import ImprintStudio
import TestSupport
import Testing

/// Results of several labels, and of images unlike the training photos, in the page.
@Suite("None of these and several labels in the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioNoveltyTests {
    private struct Seen: Decodable, Sendable {
        let label: String
        let percent: String
        let meter: String
        let alternativeText: String
        let top: [String]
        let card: String
        let saved: String
        let category: String
    }

    /// A script that answers each request to classify with two confident labels.
    private static func answer(isRejected: Bool) -> String {
        """
        const realFetch = window.fetch;
        const answer = { rejected: \(isRejected), modelVersion: 0 };
        answer.observations = [
          { label: "Bright", confidence: 0.96, category: "Light" }, { label: "Dark", confidence: 0.81, category: "Night" }];
        window.fetch = (path, options) => path === "classify"
          ? Promise.resolve(new Response(JSON.stringify(answer))) : realFetch(path, options);
        """
    }

    @Test(
        "A rejected image has no label, also in the history; several confident labels are all shown",
        arguments: [true, false])
    func results(isRejected: Bool) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let photo = try StudioSamples.write(.stripes, to: folder)
            let sight: Browser.Sight<Seen> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .reload(first: Self.answer(isRejected: isRejected)),
                    .wait("document.body.dataset.ready === 'true'"),
                    .choose("#file", photo), .wait("document.querySelectorAll('#top .number').length === 2"),
                    .note("label", Page.text("label")), .note("percent", Page.text("percent")),
                    .note("meter", "document.getElementById('meter').getAttribute('aria-valuetext')"),
                    .note("alternativeText", Page.text("alt")),
                    .note("top", "[...document.querySelectorAll('#top .number')].map(one => one.textContent)"),
                    .click("#tab-teach"), .click("#class-name"), .type("Bright"), .key("Enter"),
                    .wait("document.querySelector('#classes .confidence')?.checkVisibility() === true"),
                    .note("card", "document.querySelector('#classes .confidence .number').textContent"),
                    .click("#tab-history"), .click("#shutter"),
                    .wait("document.querySelectorAll('#pictures li').length === 1"),
                    .note("saved", "document.querySelector('#pictures bdi').textContent"), .click(".picture"),
                    .note("category", "document.getElementById('viewer-category').value"),
                ])
            let seen = sight.values
            #expect(seen.top == ["96.0 %", "81.0 %"])
            if isRejected {
                #expect(seen.label == "None of these, closest: Bright" && seen.percent == "–" && seen.card == "–")
                #expect(seen.meter == "None of these, closest: Bright")
                #expect(seen.alternativeText == "The photo is unlike the training photos: none of the labels.")
                #expect(seen.saved == "None of these" && seen.category == "None of these")
            } else {
                #expect(seen.label == "Bright" && seen.percent == "96.0 %" && seen.card == "96.0 %")
                #expect(seen.alternativeText == "Photo that may show Bright and Dark.")
                #expect(seen.saved == "Bright 96.0 %" && seen.category == "Light")
            }
            #expect(sight.console == [])
        }
    }
}
