import Foundation
import ImprintStudio
import TestSupport
import Testing

/// What the page shows while the studio takes long.
@Suite("Waiting for the studio", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioWaitingTests {
    private struct Estimated: Decodable, Sendable {
        let early: String
        let late: String
    }

    /// A script that answers requests for the status of training with a run of a fixed speed: 4 % in a second.
    ///
    /// The first status arrives at once, and the others once `window.isNoted` is set.
    private static let slowRun = """
        {
          const realFetch = window.fetch, pause = () => new Promise(resolve => setTimeout(resolve, 500));
          let version = 0, begin;
          window.fetch = async (path, options) => {
            if (!path.startsWith('training')) return realFetch(path, options);
            if (version > 0) await pause();
            while (version > 0 && !window.isNoted) await pause();
            version += 1;
            begin ??= performance.now();
            // The fraction depends on the time and not on the number of responses, which a slow machine delays.
            const fraction = Math.min(0.1 + 0.04 * (performance.now() - begin) / 1000, 0.95);
            return new Response(JSON.stringify({ version, stage: 'running', message: 'Phase 1 of 3',
              points: [], fraction, panel: 'logo', canKeepBest: false, validates: false }));
          };
        }
        """

    @Test("A run shows its remaining time after ten seconds") func remainingTime() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let sight: Browser.Sight<Estimated> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .reload(first: Self.slowRun), .wait("\(Page.text("logo-status")).startsWith('Phase 1')"),
                    .note("early", Page.text("logo-status")), .note("noted", "window.isNoted = true"),
                    .wait("\(Page.text("logo-status")).endsWith(' left')"),
                    .note("late", Page.text("logo-status")),
                ])
            #expect(sight.values.early == "Phase 1 of 3")
            #expect(sight.values.late == "Phase 1 of 3, less than a minute left")
        }
    }

    private struct Failed: Decodable, Sendable { let message: String }

    @Test("A response without a message becomes an error that names the cause") func timeout() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let busy = """
                const realFetch = window.fetch;
                window.fetch = (path, options) => options?.body && path.startsWith('example')
                  ? Promise.resolve(new Response('', { status: 500 })) : realFetch(path, options);
                """
            let sight: Browser.Sight<Failed> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .reload(first: busy), .wait("document.body.dataset.ready === 'true'"),
                    .choose("#classes > li:nth-child(1) .photos", try StudioSamples.write(.bright, to: folder)),
                    .wait("\(Page.text("said")).includes('busy')"), .note("message", Page.text("said")),
                ])
            #expect(
                sight.values.message.hasSuffix(
                    "The studio did not answer in time, because this machine is busy. Try again."))
        }
    }

    /// A script that answers the requests about training with a run that `change` controls.
    private static let ownRun = """
        { const ask = window.fetch;
          let status = { version: 1, stage: 'none', message: '', points: [], panel: 'annotate', canKeepBest: false, validates: false };
          window.change = next => { status = { ...status, ...next, version: status.version + 1 }; return 1 };
          window.fetch = async (path, options) => {
            if (path.startsWith('detector')) change({ stage: 'running', message: 'Preparing …' });
            else if (!path.startsWith('training')) return ask(path, options);
            const after = path.startsWith('detector') ? -1 : Number(new URL(path, location).searchParams.get('after'));
            while (status.version <= after) await new Promise(resolve => setTimeout(resolve, 20));
            return new Response(JSON.stringify(status)) } }
        """

    private struct Followed: Decodable, Sendable {
        let classes: [String]
        let kept: String
        let focus: String
        let moved: String
    }

    @Test("A page that follows a run shows new examples, and leaves the focus where the user has moved it")
    func run() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let focus = "document.activeElement.id"
            let stage = "document.getElementById('detector-status').dataset.stage"
            let classes = "[...document.querySelectorAll('#classes bdi')].map(one => one.textContent)"
            let end = "change({ stage: 'stopped', message: 'Stopped; the model did not change.' })"
            let artwork = try LogoSamples.artwork(side: 128).base64EncodedString()
            let sight: Browser.Sight<Followed> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note(
                        "artwork",
                        """
                        fetch('artwork?label=leaf', { method: 'POST', body: Uint8Array.from(atob("\(artwork)"), c => c.charCodeAt(0)) })
                          .then(one => one.status)
                        """),
                    .reload(first: Self.ownRun), .wait("document.body.dataset.ready === 'true'"),
                    .click("#tab-annotate"), .wait("!document.getElementById('detector-start').disabled"),
                    .click("#detector-start"), .wait("\(focus) === 'detector-stop'"),
                    .note("end", end), .wait("\(focus) === 'detector-start'"), .note("focus", focus),
                    .click("#detector-start"), .wait("\(focus) === 'detector-stop'"),
                    // The second message follows the first one within a second, and no other one follows it.
                    .note(
                        "messages",
                        """
                        change({ message: 'Phase 1 of 3: 1 %' })
                          && new Promise(done => setTimeout(() => done(change({ message: 'Phase 1 of 3: 2 %' })), 100))
                        """),
                    .wait("\(Page.text("detector-status")) === 'Phase 1 of 3: 2 %'"),
                    // Another tab adds a class during the run.
                    .note(
                        "other",
                        """
                        fetch('classes?label=Third', { method: 'POST' })
                          .then(() => new BroadcastChannel('imprint-studio').postMessage('taught')).then(() => 1)
                        """),
                    .wait("\(classes).includes('Third')"), .note("classes", classes),
                    .click("#artwork-label"), .type("Le"), .note("end", end), .wait("\(stage) === 'stopped'"),
                    // The page reads the model before it moves the focus.
                    .wait("(window.until ??= performance.now() + 1000) < performance.now()"),
                    .type("af"), .note("moved", focus), .note("kept", "document.getElementById('artwork-label').value"),
                ])
            let seen = sight.values
            #expect(seen.classes.first == "Third")
            #expect(seen.focus == "detector-start" && seen.moved == "artwork-label" && seen.kept == "Leaf")
            #expect(sight.console == [])
        }
    }
}
