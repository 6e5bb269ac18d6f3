import CHeapMeter
import Dispatch
import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintTraining
import Synchronization
import TestSupport
import Testing

@Suite("Requests") struct RequestTests {
    @Test(
        "A request returns the classifier's classifications for files, data, pixels and images",
        arguments: CropAndScale.allCases)
    func sources(cropAndScale: CropAndScale) async throws {
        let classifier = try smallModel()
        var request = ClassificationRequest(classifier)
        request.cropAndScale = cropAndScale
        let image = testImage()
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "x.jpg")
            try ImageFile.write(image, to: file)
            let expected = try classifier.classify(file, cropAndScale: cropAndScale)
            #expect(try await request.perform(on: .file(file)) == expected)
            #expect(try await request.perform(on: .data(Data(contentsOf: file))) == expected)
        }
        let expected = try classifier.classify(image, cropAndScale: cropAndScale)
        #expect(try await request.perform(on: .image(image)) == expected)
        let pixels = try PixelBuffer(width: 30, height: 20, layout: .rgb, bytes: image.samples)
        #expect(try await request.perform(on: .pixels(pixels)) == expected)
        let rotated = try classifier.classify(Orientation.right.upright(image), cropAndScale: cropAndScale)
        #expect(try await request.perform(on: .pixels(pixels, orientation: .right)) == rotated)
        let png = Data(try ImageFile.encodePNG(image))
        #expect(try await request.perform(on: .data(png, orientation: .right)) == rotated)
    }

    @Test(
        "Grayscale and RGBA pixels give the same result as images with these channels",
        arguments: [PixelBuffer.Layout.gray, .rgba])
    func channels(layout: PixelBuffer.Layout) async throws {
        let classifier = try smallModel()
        let image = testImage(channels: layout.bytesPerPixel)
        let pixels = try PixelBuffer(width: 30, height: 20, layout: layout, bytes: image.samples)
        let classifications = try await ClassificationRequest(classifier).perform(on: .pixels(pixels))
        #expect(try classifications == classifier.classify(image))
    }

    @Test(
        "Classifying a region equals classifying the cropped image, for any orientation",
        arguments: Orientation.allCases, [CropAndScale.centerCrop, .scaleFit])
    func region(orientation: Orientation, cropAndScale: CropAndScale) async throws {
        let classifier = try smallModel(cropAndScale: cropAndScale)
        let stored = testImage()
        let upright = orientation.upright(stored)
        let (columns, rows) = (upright.width / 2, upright.height / 5)
        let cropped = RasterImage(
            width: columns, height: rows, channels: 3,
            samples: (0..<rows).flatMap { row in
                let start = ((row + 2 * rows) * upright.width + columns / 2 - columns / 2) * 3
                return upright.samples[start..<(start + columns * 3)]
            })
        var request = ClassificationRequest(classifier)
        request.regionOfInterest = NormalizedRectangle(x: 0, y: 0.4, width: 0.5, height: 0.2)
        let pixels = try PixelBuffer(width: 30, height: 20, layout: .rgb, bytes: stored.samples)
        let classifications = try await request.perform(on: .pixels(pixels, orientation: orientation))
        #expect(try classifications == classifier.classify(cropped))
    }

    @Test("A small region of a large JPEG is decoded with sufficient resolution")
    func regionOfLargePhoto() async throws {
        let classifier = try smallModel()
        var large = RasterImage(width: 800, height: 640)
        for row in 0..<640 {
            for column in 0..<800 {
                // Stripes that vanish if the photo is scaled down.
                large.samples[(row * 800 + column) * 3] = column / 10 % 2 == 0 ? 0 : 255
            }
        }
        var request = ClassificationRequest(classifier)
        request.regionOfInterest = NormalizedRectangle(x: 0.5, y: 0.5, width: 0.075, height: 0.0625)
        let whole = try await request.perform(on: .image(large))
        let jpeg = try await request.perform(on: .data(Data(ImageFile.encodeJPEG(large, quality: 95))))
        for classification in whole {
            let other = try #require(jpeg.first { $0.label == classification.label })
            #expect(abs(other.confidence - classification.confidence) < 0.02)
        }
    }

    @Test("A region that is not inside the image is an error")
    func invalidRegion() async throws {
        var request = ClassificationRequest(try smallModel())
        request.regionOfInterest = NormalizedRectangle(x: 0.5, y: 0, width: 0.6, height: 1)
        let error = await #expect(throws: ImprintError.self) { try await request.perform(on: .image(testImage())) }
        #expect("\(try #require(error))".contains("regionOfInterest is x 0.5, y 0.0, width 0.6, height 1.0"))
    }

    @Test("A request filters classifications with its rule, and rejects a rule that needs missing metrics")
    func rule() async throws {
        let classifier = try smallModel()
        let all = try classifier.classify(testImage())
        let rule = ConfidenceRule(threshold: .confidence(all[1].confidence))
        let request = ClassificationRequest(classifier, rule: rule)
        #expect(try await request.perform(on: .image(testImage())) == Array(all[...1]))
        let withoutMetrics = ClassificationRequest(classifier, rule: ConfidenceRule(threshold: .perLabel))
        await #expect(
            throws: ImprintError.missingMetric("threshold", labels: ["a", "b", "c"], reason: .noTrainingRecord)
        ) {
            try await withoutMetrics.perform(on: .image(testImage()))
        }
    }

    @Test("Several requests share one decoded image, at the largest resolution that they need")
    func several() async throws {
        let (small, large) = (try smallModel(), try smallModel(labels: ["x", "y"], seed: 3, height: 300, width: 300))
        var squares = RasterImage(width: 1600, height: 1200)
        // The borders of the squares depend on the size at which the image is decoded.
        for sample in squares.samples.indices {
            let (row, column) = (sample / 3 / 1600, sample / 3 % 1600)
            squares.samples[sample] = UInt8((row / 50 * 37 + column / 50 * 91 + sample % 3 * 60) % 256)
        }
        let photo = ImageSource.data(Data(try ImageFile.encodeJPEG(squares, quality: 95)))
        let requests = [ClassificationRequest(small), ClassificationRequest(large)]
        let both = try await RequestHandler(photo).perform(requests)
        #expect(try await both[1] == requests[1].perform(on: photo))
        var demanding = requests[0]
        // This region needs the same resolution as the large model.
        demanding.regionOfInterest = NormalizedRectangle(x: 0, y: 0, width: 1, height: 0.02)
        let single = try await requests[0].perform(on: photo)
        let shared = try await RequestHandler(photo).perform([requests[0], demanding])[0]
        #expect(both[0] == shared && both[0] != single)
        #expect(try await RequestHandler(photo).perform([ClassificationRequest]()).isEmpty)
        // A later call with a more demanding request decodes the photo again, and the handler keeps the larger image.
        let handler = RequestHandler(photo)
        #expect(try await handler.perform([requests[0]])[0] == single)
        #expect(try await handler.perform([requests[1]])[0] == both[1])
        #expect(try await handler.perform([requests[0]])[0] == both[0])
    }

    @Test("A handler reads its image once, for classification and detection requests") func readOnce() async throws {
        let request = ClassificationRequest(try smallModel())
        let detection = DetectionRequest(try ImageClassifier(detectorModel(logos: ["logo"])), minimumConfidence: 0)
        let image = testImage()
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "photo.png")
            try ImageFile.write(image, to: file)
            let handler = RequestHandler(.file(file))
            #expect(try await handler.perform([request])[0] == request.perform(on: .image(image)))
            try FileManager.default.removeItem(at: file)
            #expect(try await handler.perform([request])[0] == request.perform(on: .image(image)))
            #expect(try await handler.perform([detection])[0] == detection.perform(on: .image(image)))
        }
    }

    @Test("Unreadable input is an error that names the file or the image data")
    func unreadable() async throws {
        let request = ClassificationRequest(try smallModel())
        let missing = URL(filePath: "/nowhere/x.jpg")
        let noFile = await #expect(throws: ImageError.self) { try await request.perform(on: .file(missing)) }
        #expect("\(try #require(noFile))".contains("/nowhere/x.jpg"))
        let noImage = await #expect(throws: ImageError.self) { try await request.perform(on: .data(Data("hi".utf8))) }
        #expect("\(try #require(noImage))".hasPrefix("the image data: expected an image"))
        await #expect(throws: ImageError.self) { try await request.perform(on: .data(Data())) }
    }

    @Test("A cancelled task throws CancellationError")
    func cancelled() async throws {
        let request = ClassificationRequest(try smallModel())
        let task = Task {
            // The request starts after the cancellation.
            while !Task.isCancelled { await Task.yield() }
            return try await request.perform(on: .image(testImage()))
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("Cancellation takes effect between the requests of a handler")
    func cancelledBetweenRequests() async throws {
        let requests = Array(repeating: ClassificationRequest(try smallModel()), count: 200_000)
        // On a busy machine, the cancellation may follow the last request, and the test must try again.
        for _ in 0..<100 {
            let task = Task { () async throws -> Void in
                _ = try await RequestHandler(.image(testImage())).perform(requests)
            }
            // On a separate thread, because all threads of the task pool and of dispatch queues may be busy until the requests are done.
            Thread.detachNewThread {
                Thread.sleep(forTimeInterval: 0.02)
                task.cancel()
            }
            do {
                try await task.value
            } catch is CancellationError {
                return
            }
        }
        Issue.record("the handler performed all requests of every task")
    }

    @Test("Sixteen tasks share one classifier, and each receives the result of its image")
    func shared() async throws {
        let classifier = try smallModel()
        let expected = try (0..<160).map { try classifier.classify(testImage($0)) }
        try await withThrowingTaskGroup(of: (Int, [[Classification]]).self) { group in
            for task in 0..<16 {
                group.addTask {
                    let request = ClassificationRequest(classifier)
                    var results: [[Classification]] = []
                    for number in 0..<10 {
                        results.append(try await request.perform(on: .image(testImage(task * 10 + number))))
                    }
                    return (task, results)
                }
            }
            for try await (task, results) in group {
                #expect(results == Array(expected[(task * 10)..<(task * 10 + 10)]))
            }
        }
    }

    @Test("While models are swapped, each result comes from exactly one of them")
    func swapped() async throws {
        let models = [try smallModel(labels: ["a", "b"], seed: 1), try smallModel(labels: ["c", "d", "e"], seed: 2)]
        let live = LiveClassifier(models[0])
        let expected = try models.map { try $0.classify(testImage()) }
        let request = ClassificationRequest(live)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<100 {
                        let classifications = try await request.perform(on: .image(testImage()))
                        #expect(expected.contains(classifications))
                    }
                }
            }
            for swap in 0..<200 {
                live.replace(with: models[swap % 2])
                await Task.yield()
            }
            try await group.waitForAll()
        }
        live.replace(with: models[1])
        #expect(try await request.perform(on: .image(testImage())) == expected[1])
    }

    @Test(
        "A rule with a value outside 0 to 1 is an error",
        arguments: [
            ConfidenceRule(threshold: .confidence(1.5)), ConfidenceRule(threshold: .confidence(.nan)),
            ConfidenceRule(minimumPrecision: 2), ConfidenceRule(minimumRecall: -0.1),
            ConfidenceRule(minimumPrecision: .nan),
        ])
    func invalidRule(rule: ConfidenceRule) async throws {
        let request = ClassificationRequest(try smallModel(), rule: rule)
        let error = await #expect(throws: ImprintError.self) { try await request.perform(on: .image(testImage())) }
        guard case .invalidSetting(_, _, "a number from 0 to 1") = error else {
            Issue.record("\(error.map { "\($0)" } ?? "")")
            return
        }
        // Apps show the localized description in alerts.
        #expect((error as (any Error)?)?.localizedDescription == error?.description)
    }

    @Test("Requests of an actor run on other threads and do not block its executor")
    func offloaded() async throws {
        let classifier = try smallModel()
        let photo = ImageSource.data(Data(try ImageFile.encodePNG(testImage(width: 1600, height: 1200))))
        let request = ClassificationRequest(classifier)
        let screen = Screen()
        let decoding = try await screen.peakMemory { _ in _ = try photo.stored(coveringShortSide: 1200) }
        let requested = try await screen.peakMemory { _ in _ = try await request.perform(on: photo) }
        let handled = try await screen.peakMemory { _ in
            _ = try await RequestHandler(photo).perform([request, request])
        }
        let streamed = try await screen.peakMemory { _ in
            let frames = AsyncStream<ImageSource> { continuation in
                continuation.yield(photo)
                continuation.finish()
            }
            for try await element in classifier.classifications(for: frames) { #expect(element.frame == 0) }
        }
        // With a sanitizer, memory is not measured.
        guard let decoding, let requested, let handled, let streamed else { return }
        #expect(decoding >= 1600 * 1200 * 3, "the decoded photo has more than \(decoding) bytes")
        for peak in [requested, handled, streamed] { #expect(peak < 1 << 20, "\(peak) bytes") }
    }
}

@Suite struct GroupedConfidenceTests {
    private let classifications = [
        Classification(label: "LightOnDark", confidence: 0.5), Classification(label: "DarkOnLight", confidence: 0.2),
        Classification(label: "Other", confidence: 0.3),
    ]

    @Test("The grouped confidence combines all labels except the excluded ones")
    func sums() {
        #expect(abs(classifications.groupedConfidence(excluding: ["Other"], sumToOne: true) - 0.7) < 1e-6)
        #expect(abs(classifications.groupedConfidence(excluding: ["Other"], sumToOne: false) - 0.6) < 1e-6)
        let labels = Set(classifications.map(\.label))
        for sumToOne in [true, false] {
            #expect(classifications.groupedConfidence(excluding: labels, sumToOne: sumToOne) == 0)
            #expect([Classification]().groupedConfidence(excluding: [], sumToOne: sumToOne) == 0)
        }
        let many = (0..<1000).map { Classification(label: "\($0)", confidence: 0.001_000_1) }
        #expect(many.groupedConfidence(excluding: [], sumToOne: true) == 1)
    }

    @Test("Categories replace their labels, sorted by confidence")
    func categories() throws {
        let categories = try Categories(["logo": ["DarkOnLight", "LightOnDark"]])
        let box = NormalizedRectangle(x: 0, y: 0, width: 0.5, height: 0.5)
        let classifications = [
            Classification(label: "Other", confidence: 0.45, threshold: 0.3),
            Classification(label: "LightOnDark", confidence: 0.35, box: box),
            Classification(label: "DarkOnLight", confidence: 0.2),
        ]
        let rolledUp = classifications.rolledUp(into: categories, sumToOne: true)
        #expect(rolledUp.map(\.label) == ["logo", "Other"])
        #expect(abs(rolledUp[0].confidence - 0.55) < 1e-6 && rolledUp[0].box == box && rolledUp[0].threshold == nil)
        #expect(rolledUp[1].confidence == 0.45 && rolledUp[1].threshold == 0.3)
        #expect(abs(classifications.rolledUp(into: categories, sumToOne: false)[0].confidence - 0.48) < 1e-6)
    }

    @Test("A label with the name of a category is merged into the category")
    func namesakes() throws {
        let categories = try Categories(["computer": ["laptop", "desktop"]])
        let classifications = [
            Classification(label: "computer", confidence: 0.5), Classification(label: "laptop", confidence: 0.25),
            Classification(label: "cat", confidence: 0.125), Classification(label: "desktop", confidence: 0.125),
        ]
        let rolledUp = classifications.rolledUp(into: categories, sumToOne: true)
        #expect(rolledUp.map(\.label) == ["computer", "cat"] && rolledUp.map(\.confidence) == [0.875, 0.125])
        #expect(classifications.rolledUp(into: categories, sumToOne: false)[0].confidence == 1 - 0.5 * 0.75 * 0.875)
    }

    @Test("confidencesSumToOne is true only if the confidences sum to one", arguments: [true, false])
    func shares(isShared: Bool) throws {
        let classifier = try smallModel(isShared: isShared)
        #expect(classifier.confidencesSumToOne == isShared)
        let sum = try classifier.classify(testImage()).map(\.confidence).reduce(0, +)
        #expect((abs(sum - 1) < 1e-5) == isShared)
    }
}

/// An actor, like the main actor of a user interface, whose executor measures the memory that its jobs allocate.
private actor Screen {
    private final class Meter: SerialExecutor {
        private let queue = DispatchQueue(label: "screen")
        private let peak = Mutex<Int64>(0)

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { [self] in
                heap_meter_start()
                job.runSynchronously(on: asUnownedSerialExecutor())
                let found = Int64(heap_meter_stop())
                peak.withLock { $0 = $0 < 0 || found < 0 ? -1 : max($0, found) }
            }
        }

        /// Returns the largest number of bytes that a job has allocated on its thread since the last call, and waits for the jobs so far.
        func takePeak() -> Int? {
            let found = queue.sync {
                peak.withLock { peak in
                    defer { peak = 0 }
                    return peak
                }
            }
            return found < 0 ? nil : Int(found)
        }
    }

    private let meter = Meter()
    nonisolated var unownedExecutor: UnownedSerialExecutor { meter.asUnownedSerialExecutor() }

    /// Returns the peak memory in bytes of one job of the actor's executor during `work`; nil if it cannot be measured.
    nonisolated func peakMemory(_ work: @Sendable (isolated Screen) async throws -> Void) async throws -> Int? {
        _ = meter.takePeak()
        try await work(self)
        return meter.takePeak()
    }
}
