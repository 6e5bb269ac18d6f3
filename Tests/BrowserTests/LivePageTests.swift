import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

@testable import ImprintLive

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The page that follows a training run.
@Suite("Live page") struct LivePageTests {
    /// The visible values of the page.
    private struct Seen: Decodable, Sendable {
        let points: [String: Int]
        let total: Int
        let phase: String
        let progress: Double
        let overflow: Int
        let title: String
        let heading: String
    }

    private static let expressions = [
        "points": """
        Object.fromEntries([...document.querySelectorAll('#curves .chart')].flatMap(chart => [...chart.querySelectorAll('g')]
          .map(line => [chart.classList[1] + ' ' + line.classList[0], line.querySelectorAll('circle > title').length])))
        """,
        "total": "Number(document.querySelector('.confusion tfoot td:last-child')?.textContent ?? 0)",
        "phase": "document.querySelector('.phase').textContent",
        "progress": "document.querySelector('progress').value",
        "overflow": "document.scrollingElement.scrollWidth - innerWidth",
        "title": "document.title",
        "heading": "document.querySelector('h1').textContent",
    ]

    private func writePhotos(_ folder: URL) throws {
        for index in 0..<32 {
            var image = RasterImage(width: 16, height: 16)
            var stream = RandomStream(seed: 3, "photo", index)
            for sample in image.samples.indices {
                image.samples[sample] = UInt8(stream.index(below: 128) + (index % 2) * 100)
            }
            let label = folder.appending(path: index % 2 == 0 ? "dark" : "<b>bright & wide")
            try FileManager.default.createDirectory(at: label, withIntermediateDirectories: true)
            try ImageFile.write(image, to: label.appending(path: "\(index).png"))
        }
    }

    /// The values of the page at two moments.
    private struct Followed: Decodable, Sendable {
        let halfway: Seen
        let end: Seen
    }

    @Test(
        "The page shows a running training and follows it to the end",
        .enabled(if: Browser.isAvailable, Browser.skipReason), arguments: [1280, 390])
    func follows(width: Int) async throws {
        try await withTemporaryFolder { folder in
            try writePhotos(folder)
            var configuration = ClassifierConfiguration()
            configuration.start = .network("logonet", width: 0.125)
            configuration.inputSize = 16
            configuration.batchSize = 8
            configuration.epochs = 5
            configuration.validation = .fraction(0.25)
            let server = try await LiveServer()
            let signal = folder.appending(path: "second-page")
            let values = "({\(Self.expressions.map { "\($0): \($1)" }.joined(separator: ", "))})"
            let steps: [Browser.Step] = [
                .wait("document.querySelectorAll('.loss .training circle').length === 3"), .note("halfway", values),
                // A second page opens while the first one stays open.
                .page(2, signal: signal), .wait("document.body.dataset.finished === 'true'"), .note("end", values),
            ]
            let photos = try ImageFolder(at: folder)
            var follower: Task<Browser.Sight<Followed>, any Error>?
            for try await event in ClassifierTrainer(photos: photos, configuration: configuration).start() {
                server.show(event)
                guard case .epoch(let metrics, _) = event, metrics.epoch == 3 else { continue }
                follower = Task {
                    try await Browser.visit(server.url, Browser.View(width: width), steps: steps)
                }
                try await Browser.answer(signal) { server.url }
                // Wait for the first response to the second page.
                for _ in 0..<15_000 where server.lastResponses.withLock({ $0.count }) < 2 {
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            // A browser on a busy machine can need more than the default two seconds.
            await server.finish(waitingAtMost: .seconds(60))
            let sight = try #require(try await follower?.value)
            let (halfway, end) = (sight.values.halfway, sight.values.end)
            #expect(
                halfway.points == [
                    "loss training": 3, "loss validation": 3, "accuracy training": 3, "accuracy validation": 3,
                    "learning-rate rate": 3,
                ])
            #expect(halfway.phase == "Epoch 3 of 5" && abs(halfway.progress - 0.6) < 1e-3 && halfway.total == 0)
            #expect(halfway.heading == "<b>bright & wide, dark" && halfway.title.hasPrefix("Epoch 3 of 5"))
            #expect(halfway.overflow <= 0)
            #expect(end.points.count == 5 && end.points.values.allSatisfy { $0 == 5 })
            #expect(end.phase == "Finished" && end.progress == 1 && end.title == "Finished" && end.overflow <= 0)
            #expect(end.total == 8)
            #expect(sight.console == [])
            #expect(sight.requests.allSatisfy { $0.hasPrefix(server.url.absoluteString) })
        }
    }

    @Test("The page escapes names and messages") func escaping() {
        let photo = URL(filePath: "/photos/<img src=x onerror=alert(1)>.png")
        var run = LiveRun()
        run.take(.unreadable(SkippedImage(url: photo, reason: .truncated(file: photo, reason: "<b>end</b>"))))
        run.end(ImprintError.invalidSetting(name: "<i>", found: "x", expected: "y"))
        #expect(run.head.contains("&lt;img src=x") && run.head.contains("&lt;b&gt;") && run.head.contains("&lt;i&gt;"))
        #expect(!run.head.contains("<img") && !run.head.contains("<b>") && !run.head.contains("<i>"))
        #expect(run.isFinished)
    }

    @Test(
        "The page counts the phases of a detector, and the epochs of a classifier",
        arguments: [(.boxes, "phase"), (.fromScratch, "epoch")] as [(TrainingKind, String)])
    func unit(kind: TrainingKind, unit: String) {
        var run = LiveRun()
        run.take(
            .started(
                TrainingStart(
                    kind: kind, labels: ["leaf"], trainingImages: 8, network: "lenet", parameterCount: 1,
                    trainableParameterCount: 1, epochs: 3)))
        let metrics = EpochMetrics(
            epoch: 1, loss: 1, accuracy: 0.5, validationLoss: 1, validationAccuracy: 0.5, learningRate: 1e-3)
        run.take(.epoch(metrics, seconds: 1))
        run.take(
            .batch(
                TrainingBatch(
                    epoch: 2, epochs: 3, imagesSeen: 4, imagesPerEpoch: 8, imagesSeenInRun: 12, imagesPerRun: 24,
                    loss: 1, accuracy: 0.5)))
        #expect(run.title.hasPrefix("\(unit.capitalized) 2 of 3"))
        #expect(run.head.contains("after \(unit) 1") && run.head.contains("best \(unit)"))
    }

    /// Returns the metrics of epochs with these validation losses.
    private func history(_ losses: [Float]) -> [EpochMetrics] {
        losses.enumerated().map { index, loss in
            EpochMetrics(
                epoch: index + 1, loss: 1, accuracy: 0.5, validationLoss: loss, validationAccuracy: 0.5,
                learningRate: 1e-3)
        }
    }

    @Test(
        "The best epoch is one after the photos changed and, at the end, the epoch of the model",
        arguments: [(0, 1), (1, 3), (2, 3)])
    func bestEpoch(incomparable: Int, expected: Int) throws {
        let history = history([0.1, 0.9, 0.5])
        var run = LiveRun()
        var start = TrainingStart(
            kind: .fromScratch, labels: ["a", "b"], trainingImages: 8, network: "lenet", parameterCount: 1,
            trainableParameterCount: 1, epochs: 3,
            resumed: .init(history: Array(history.prefix(2)), hasSameImages: incomparable < 2))
        start.incomparableEpochs = incomparable
        run.take(.started(start))
        run.take(.epoch(history[2], seconds: 1))
        #expect(run.head.contains("<dt>best epoch</dt><dd>\(expected)</dd>"))
        #expect(run.body.contains(">best: \(expected)</text>"))
        for (kept, text) in [(2, "<dt>best epoch</dt><dd>2</dd>"), (0, nil)] as [(Int, String?)] {
            var ended = run
            let record = TrainingRecord(
                .classifier(ClassifierHyperparameters()), history: history, keptEpoch: kept, startAccuracy: 0.75)
            let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.1)
            let model = ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
                preprocessing: Preprocessing(width: 16, height: 16), training: record)
            ended.take(.finished(TrainingResult(model: model)))
            #expect(text.map { ended.head.contains($0) } ?? !ended.head.contains("best epoch"))
        }
    }

    @Test("An epoch that is less accurate than the fitted head is not the best", arguments: [0.5, 0.75] as [Float])
    func fittedHead(startAccuracy: Float) {
        var run = LiveRun()
        var batch = TrainingBatch(
            epoch: 1, epochs: 3, imagesSeen: 8, imagesPerEpoch: 8, imagesSeenInRun: 8, imagesPerRun: 24, loss: 1,
            accuracy: 0.5)
        batch.startAccuracy = startAccuracy
        run.take(.batch(batch))
        for epoch in history([0.9, 0.5]) { run.take(.epoch(epoch, seconds: 1)) }
        let isBest = startAccuracy == 0.5
        #expect(run.head.contains("<dt>best epoch</dt><dd>2</dd>") == isBest)
        #expect(run.body.contains(">best: 2</text>") == isBest)
        let text = "No epoch so far is as accurate on the validation set as the fitted head."
        #expect(run.body.contains(text) != isBest)
    }

    @Test("The server remembers a limited number of pages, and forgets the oldest") func pageLimit() {
        var responses = PageResponses()
        for index in 0..<1000 {
            responses.record("page\(index)", version: index)
            responses.record(String(repeating: "a", count: PageResponses.identifierLimit + 1 + index), version: index)
        }
        #expect(responses.count == PageResponses.pageLimit)
        let start = ContinuousClock.now - .seconds(3600)
        #expect(responses.hasOlder(than: 1000, since: start) && !responses.hasOlder(than: 500, since: start))
    }

    @Test(
        "The state is not sent to pages of other sites",
        arguments: [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)])
    func otherSites(site: String, expected: Int) async throws {
        let server = try await LiveServer()
        let state = server.url.appending(path: "state").appending(queryItems: [URLQueryItem(name: "page", value: "a")])
        #expect(try await status(state, headers: ["Sec-Fetch-Site": site]) == expected)
        #expect(server.lastResponses.withLock { $0.count } == (expected == 200 ? 1 : 0))
        await server.finish(waitingAtMost: .zero)
    }

    private func status(_ url: URL, host: String? = nil, headers: [String: String] = [:]) async throws -> Int {
        var request = URLRequest(url: url)
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        if let host { request.setValue(host, forHTTPHeaderField: "Host") }
        let (_, response) = try await URLSession.shared.data(for: request)
        return try #require(response as? HTTPURLResponse).statusCode
    }

    @Test("The server listens only on the loopback interface and rejects other host names") func privacy()
        async throws
    {
        let server = try await LiveServer()
        #expect(server.url.host() == "127.0.0.1")
        let port = try #require(server.url.port)
        #expect(try await status(server.url) == 200)
        #expect(try await status(server.url, host: "localhost:\(port)") == 200)
        #expect(try await status(server.url, host: "pictures.example:\(port)") == 403)
        #expect(try await status(server.url.appending(path: "state"), host: "pictures.example") == 403)
        #expect(try await status(server.url.appending(path: "elsewhere")) == 404)
        await server.finish()
    }

    @Test("A server without references is released, and stops listening") func release() async throws {
        // Another test could take a default port as soon as it is free.
        let port = TestPorts.releasedPage
        var server: LiveServer? = try await LiveServer(port: port)
        weak var released = server
        let url = try #require(server?.url)
        #expect(try await status(url) == 200)
        server = nil
        // The last response may still be on its way.
        for _ in 0..<6_000 where released != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(released == nil)
        // Stopping takes up to a second, and more on a busy machine.
        var next: LiveServer?
        for _ in 0..<6_000 where next == nil {
            next = try? await LiveServer(port: port)
            if next == nil { try await Task.sleep(for: .milliseconds(10)) }
        }
        await next?.finish(waitingAtMost: .zero)
        #expect(next != nil)
    }

    @Test("A requested port that is in use is an error; otherwise the server takes another port") func portInUse()
        async throws
    {
        let first = try await LiveServer()
        let port = try #require(first.url.port)
        await #expect(throws: LocalServerError.noPort(of: port...port)) { try await LiveServer(port: port) }
        let second = try await LiveServer()
        // A port below that of the first server may have become free.
        let other = try #require(second.url.port)
        #expect(other != port && (LiveServer.defaultPort..<LiveServer.defaultPort + 100).contains(other))
        await first.finish()
        await second.finish()
        for port in [0, -1, 65536] {
            await #expect(throws: LocalServerError.noPort(of: port...port)) { try await LiveServer(port: port) }
        }
    }
}
