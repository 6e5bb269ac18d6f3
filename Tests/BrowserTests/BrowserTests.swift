import Foundation
import TestSupport
import Testing

/// The features of `Browser` that tests of pages need: error reports and waiting.
@Suite("Browser", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct BrowserTests {
    private struct Text: Decodable { let text: String }

    private func withPage<Result>(_ html: String, _ body: (URL) throws -> Result) throws -> Result {
        try withTemporaryFolder { folder in
            let page = folder.appending(path: "page.html")
            try Data("<!doctype html><title>page</title><body>\(html)".utf8).write(to: page)
            return try body(page)
        }
    }

    @Test("Errors and requests of a page are reported") func pageErrors() throws {
        try withPage("<img src=\"gone.png\"><script>console.error('one'); throw new Error('two')</script>") { page in
            let sight: Browser.Sight<Text> = try Browser.look(at: page, for: ["text": "document.title"])
            #expect(sight.values.text == "page")
            #expect(sight.console.contains("one") && sight.console.contains { $0.contains("two") })
            #expect(sight.requests.map { URL(string: $0)?.lastPathComponent } == ["page.html", "gone.png"])
        }
    }

    @Test("The browser waits for changes by scripts, and times out if scripts are disabled") func waiting() throws {
        let page =
            "<p>before</p><script>setTimeout(() => document.querySelector('p').textContent = 'after', 300)</script>"
        let text = "document.querySelector('p').textContent"
        try withPage(page) { page in
            let later: Browser.Sight<Text> = try Browser.look(
                at: page, waitingFor: "\(text) === 'after'", for: ["text": text])
            #expect(later.values.text == "after")
            #expect(throws: Python.Failure.self) {
                try Browser.look(
                    at: page, Browser.View(runsScripts: false), waitingFor: "\(text) === 'after'", timeout: 5,
                    for: ["text": text], as: Text.self)
            }
        }
    }

    @Test("Failing expressions and missing pages are errors") func failures() throws {
        try withPage("") { page in
            let failure = #expect(throws: Python.Failure.self) {
                try Browser.look(at: page, for: ["text": "nothing.here"], as: Text.self)
            }
            #expect(failure?.messages.contains("nothing is not defined") == true)
            #expect(throws: Python.Failure.self) {
                try Browser.look(at: page.appending(path: "gone"), for: ["text": "document.title"], as: Text.self)
            }
        }
    }
}
