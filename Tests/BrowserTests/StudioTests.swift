import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintStudio
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

/// The studio in a browser.
@Suite("Studio in a browser", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioTests {
    static let widths = [1280, 390]

    private static let isLive = "document.body.dataset.source === 'live'"
    private static let label = Page.text("label")

    /// Checks that the page has no errors and sends requests only to the studio.
    private func check<Values>(_ sight: Browser.Sight<Values>, _ studio: Studio) throws {
        let origin = "http://127.0.0.1:\(try #require(studio.url.port))/"
        #expect(sight.console == [])
        #expect(sight.requests.count > 5)
        #expect(sight.requests.allSatisfy { $0.hasPrefix(origin) || $0.hasPrefix("blob:\(origin)") })
    }

    private struct Live: Decodable, Sendable {
        /// The result, and the turn of the pointer that its confidence needs.
        struct Reading: Decodable, Sendable {
            let percent: String
            let value: Double
            let top: [String]
            let turn: String
            let expected: String
        }
        let reading: Reading
        let spoken: String
        let alt: String
        let altOfNone: String
        let chosen: String
        let overflow: Int
        let paused: String
        let tracks: Int
        let before: Int
        let after: Int
        let hidden: String
    }

    @Test(
        "The studio classifies the camera continuously, and stops while paused or hidden", arguments: widths)
    func live(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(width: width, camera: try StudioSamples.camera([.bright], in: folder))
            let count = "performance.getEntriesByName(new URL('classify', location).href).length"
            let sight: Browser.Sight<Live> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Self.label) === 'Bright'"), .wait("\(count) >= 3"),
                    .wait("\(Page.text("spoken")).startsWith('Bright, ')"), .note("spoken", Page.text("spoken")),
                    // The label can change to Bright while its smoothed confidence is below the minimum of this text.
                    .wait("\(Page.text("alt")).startsWith('Photo')"), .note("alt", Page.text("alt")),
                    // The confidence may still rise, so all parts are read at the same time.
                    .note(
                        "reading",
                        """
                        ({ percent: \(Page.text("percent")),
                          value: Number(document.getElementById('meter').getAttribute('aria-valuenow')),
                          top: [...document.querySelectorAll('#top li')].map(one =>
                            one.innerText.replace(/\\s+/g, ' ')),
                          turn: document.querySelector('.pointer').style.transform,
                          expected: `rotate(${parseFloat(\(Page.text("percent"))) * 1.8 - 90}deg)` })
                        """),
                    // Select another label than the best one, and change the threshold by keyboard.
                    .click("#alt-area-title"), .click("#alt-threshold"), .key("End"),
                    .note("altOfNone", Page.text("alt")),
                    .note(
                        "chosen",
                        """
                        (() => { const select = document.getElementById('shown'); select.value = 'Dark';
                          select.dispatchEvent(new Event('change')); return \(Self.label); })()
                        """),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .click("#pause"), .wait("document.body.dataset.source === 'paused'"),
                    .note("paused", Page.text("notice")),
                    .note("tracks", "document.getElementById('video').srcObject === null ? 0 : 1"),
                    .note("before", count), .wait("(window.until ??= performance.now() + 2500) < performance.now()"),
                    .note("after", count),
                    // The last response before the pause may still arrive.
                    .note("resumed", "(window.resumed = \(count), 1)"), .click("#pause"), .wait(Self.isLive),
                    .wait("\(count) > window.resumed + 1"),
                    .minimize(true), .wait("document.body.dataset.source === 'paused'"),
                    .note("hidden", Page.text("notice")),
                    .minimize(false), .wait(Self.isLive),
                ])
            let seen = sight.values
            let reading = seen.reading
            #expect(abs(reading.value - (Double(reading.percent.dropLast(2)) ?? -1)) < 0.11 && reading.value > 50)
            #expect(seen.spoken.hasPrefix("Bright, ") && seen.spoken.hasSuffix(" percent"))
            #expect(reading.top.count == 2 && reading.top[0].hasPrefix("Bright ") && reading.top[1].hasPrefix("Dark "))
            let turns = [reading.turn, reading.expected].map { Double($0.dropFirst(7).dropLast(4)) ?? .nan }
            #expect(abs(turns[0] - turns[1]) < 0.1)
            #expect(
                seen.alt == "Photo that may show Bright."
                    && seen.altOfNone == "No label reaches 100 %.")
            #expect(seen.chosen == "Dark" && seen.overflow <= 0)
            #expect(seen.paused == "Paused: the camera is off." && seen.tracks == 0 && seen.after <= seen.before + 1)
            #expect(seen.hidden == "Paused: the camera is off.")
            try check(sight, studio)
        }
    }

    private struct Photo: Decodable, Sendable {
        let notice: String
        let shutter: Bool
        let first: [String]
        let second: [String]
        let answered: [[String: Confidence]]
        let said: String
        let labelThen: String

        enum Confidence: Decodable, Sendable {
            case text(String), number(Float)
            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                if let text = try? value.decode(String.self) {
                    self = .text(text)
                } else {
                    self = .number(try value.decode(Float.self))
                }
            }
        }
    }

    @Test("Without a camera, chosen and dropped photos get the same results as from the classifier", arguments: widths)
    func photos(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let bright = try StudioSamples.write(.bright, to: folder)
            let dark = try StudioSamples.write(.dark, to: folder)
            let textFile = folder.appending(path: "note.jpg")
            try Data("This is not an image.".utf8).write(to: textFile)
            let top = "[...document.querySelectorAll('#top li')].map(one => one.innerText.replace(/\\s+/g, ' '))"
            let dropped = try Data(contentsOf: dark).base64EncodedString()
            let sight: Browser.Sight<Photo> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .wait("\(Page.text("notice")).includes('Choose a photo')"), .note("notice", Page.text("notice")),
                    .note("shutter", "document.getElementById('shutter').disabled"),
                    .choose("#file", bright), .wait("\(Self.label) === 'Bright'"), .note("first", top),
                    .note(
                        "dropped",
                        """
                        (() => { const data = new DataTransfer(), bytes = Uint8Array.from(atob("\(dropped)"), c => c.charCodeAt(0));
                          data.items.add(new File([bytes], "dark.jpg", { type: "image/jpeg" }));
                          document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true, bubbles: true })); return 1 })()
                        """),
                    .wait("\(Self.label) === 'Dark'"), .note("second", top),
                    .note(
                        "answered",
                        """
                        fetch('classify', { method: 'POST', body: Uint8Array.from(atob("\(dropped)"), c => c.charCodeAt(0)) })
                          .then(answer => answer.json()).then(answer => answer.observations)
                        """),
                    .choose("#file", textFile), .wait("\(Page.text("said")) !== ''"), .note("said", Page.text("said")),
                    .note("labelThen", Self.label),
                ])
            let seen = sight.values
            #expect(
                seen.notice == "There is no camera on this machine. Choose a photo, or drop one here." && seen.shutter)
            let classifier = try ImageClassifier(contentsOf: folder.appending(path: "model.imprint"))
            func lines(_ photo: URL) throws -> [String] {
                try classifier.classify(photo).map {
                    "\($0.label) \(String(format: "%.1f", Double($0.confidence) * 100)) %"
                }
            }
            #expect(seen.first == (try lines(bright)))
            #expect(seen.second == (try lines(dark)))
            // The confidences are bitwise identical.
            let answered = seen.answered.map { values -> Classification? in
                guard case .text(let label)? = values["label"], case .number(let confidence)? = values["confidence"]
                else { return nil }
                return Classification(label: label, confidence: confidence)
            }
            #expect(answered == (try classifier.classify(dark)))
            #expect(seen.said.hasPrefix("The image data: expected an image"), "\(seen.said)")
            #expect(seen.labelThen == "No result yet")
            // The browser itself also logs the failed request to the console.
            #expect(sight.console.allSatisfy { $0.contains("422") })
        }
    }

    private struct Asked: Decodable, Sendable {
        let calls: Int
        let gone: String
        let source: String
    }

    @Test("The studio requests one camera at a time, turns it off, and reports its disconnection") func camera()
        async throws
    {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(camera: try StudioSamples.camera([.bright], in: folder))
            let sight: Browser.Sight<Asked> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Self.label) === 'Bright'"), .click("#pause"),
                    .wait("document.body.dataset.source === 'paused'"),
                    .note(
                        "slow",
                        """
                        (() => { const devices = navigator.mediaDevices, ask = devices.getUserMedia.bind(devices);
                          window.calls = 0; window.streams = [];
                          window.hold = () => { window.released = new Promise(done => { window.release = done }) };
                          devices.getUserMedia = async wish => { window.calls += 1; const stream = await ask(wish);
                            await window.released; window.streams.push(stream); return stream };
                          return 1 })()
                        """),
                    .note("held", "(hold(), 1)"), .click("#pause"), .click("#pause"), .click("#pause"),
                    .note("released", "(release(), 1)"), .wait(Self.isLive), .note("calls", "calls"),
                    .note("held", "(hold(), 1)"), .click("#pause"), .click("#pause"), .click("#pause"),
                    .note("released", "(release(), 1)"), .wait("streams.length === 2"),
                    .wait("streams.every(stream => stream.getTracks().every(track => track.readyState === 'ended'))"),
                    .click("#pause"), .wait(Self.isLive),
                    .note("end", "streams[2].getTracks()[0].dispatchEvent(new Event('ended'))"),
                    .note("gone", Page.text("notice")), .note("source", "document.body.dataset.source"),
                ])
            #expect(sight.values.calls == 1 && sight.values.source == "none")
            #expect(sight.values.gone.hasPrefix("The camera was disconnected."))
            try check(sight, studio)
        }
    }
}
