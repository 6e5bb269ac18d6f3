#if !canImport(ImageIO)
    internal import CLCMS
    internal import ImprintCore
    internal import Synchronization

    /// The conversion from the colours of a file to sRGB with Little CMS: perceptual intent, 8 bits in and out.
    ///
    /// A folder of photos has few distinct profiles, so each conversion is set up once and cached.
    final class ColorProfile: Sendable {
        /// The name in the profile; nil if the file has no readable colour description.
        let name: String?
        /// The reason why the samples are treated as sRGB although the file describes other colours; nil if there is no problem.
        let problem: String?
        private let conversion: Conversion

        private enum Conversion: Sendable {
            /// The samples are sRGB or are treated as sRGB.
            case none
            /// The red, green and blue of each of the 256 grey levels.
            case table([UInt8])
            case rgb(Transform, withAlpha: Transform)
            case cmyk(Transform)
        }

        private struct Key: Hashable {
            let description: ColorDescription
            let model: ColorModel
        }

        private static let known = Mutex<[Key: ColorProfile]>([:])
        private static let knownLimit = 64
        /// The maximum size of a profile in bytes; profiles of printing presses have up to about 3 MB.
        private static let profileLimit = 4 << 20

        /// Returns the profile for samples of a colour model; nil without a description, because the samples are then sRGB.
        static func of(_ description: ColorDescription?, model: ColorModel) -> ColorProfile? {
            guard var description else { return nil }
            if case .profile(let bytes) = description, bytes.count > profileLimit {
                description = .unusable("the ICC profile has \(bytes.count) bytes, expected at most \(profileLimit)")
            }
            let key = Key(description: description, model: model)
            // Created within the lock, so that threads that need the same profile wait for the first of them.
            return known.withLock { known in
                if let profile = known[key] { return profile }
                let profile = ColorProfile(description, model: model)
                // Many files with different profiles must not fill the memory.
                if known.count >= knownLimit { known.removeAll() }
                known[key] = profile
                return profile
            }
        }

        private init(_ description: ColorDescription, model: ColorModel) {
            do {
                let opened = try OpenProfile(description)
                name = opened.name
                do {
                    conversion = try Self.conversion(from: opened, model: model)
                    problem = nil
                } catch {
                    conversion = .none
                    problem = error.reason
                }
            } catch {
                name = nil
                conversion = .none
                problem = error.reason
            }
        }

        private static func conversion(from profile: OpenProfile, model: ColorModel) throws(Unusable) -> Conversion {
            switch (model, profile.colorSpace) {
            case (.grey, cmsSigGrayData):
                let toGrey = try Transform(profile, input: Format.grey, output: Format.rgb)
                let table = toGrey.converted([UInt8](0...255), bytesPerPixel: 1)
                return isNearlyEqual(table, (0...255).flatMap { [$0, $0, $0] }) ? .none : .table(table)
            case (.grey, cmsSigRgbData), (.rgb, cmsSigRgbData):
                let toRGB = try Transform(profile, input: Format.rgb, output: Format.rgb)
                let levels = stride(from: 0, through: 255, by: 17).map { UInt8($0) }
                let grid = levels.flatMap { red in levels.flatMap { green in levels.flatMap { [red, green, $0] } } }
                if isNearlyEqual(toRGB.converted(grid, bytesPerPixel: 3), grid) { return .none }
                return .rgb(toRGB, withAlpha: try Transform(profile, input: Format.rgba, output: Format.rgba))
            case (.cmyk, cmsSigCmykData):
                return .cmyk(try Transform(profile, input: Format.cmyk, output: Format.rgb))
            default:
                throw Unusable("the profile is for another colour model")
            }
        }

        /// Whether two lists differ only by rounding; then the profile describes sRGB.
        private static func isNearlyEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
            zip(a, b).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
        }

        /// Converts an image to sRGB; alpha does not change.
        func convert(_ image: RasterImage) -> RasterImage {
            let channels = image.channels
            var samples = image.samples
            switch conversion {
            case .none, .cmyk: break
            case .table(let table):
                for pixel in stride(from: 0, to: samples.count, by: channels) {
                    let offset = 3 * Int(samples[pixel])
                    for channel in 0..<3 { samples[pixel + channel] = table[offset + channel] }
                }
            case .rgb(let opaque, let withAlpha):
                (channels == 4 ? withAlpha : opaque).convert(&samples, bytesPerPixel: channels)
            }
            return RasterImage(width: image.width, height: image.height, channels: channels, samples: samples)
        }

        /// Converts CMYK samples to sRGB; nil if the profile is not for CMYK.
        func convert(cmyk samples: [UInt8]) -> [UInt8]? {
            guard case .cmyk(let transform) = conversion else { return nil }
            return transform.converted(samples, bytesPerPixel: 4)
        }
    }

    /// The error of a profile that cannot be used.
    private struct Unusable: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// The sample layouts of lcms2.h, whose macros Swift cannot import.
    private enum Format {
        static let grey = of(colorSpace: 3, channels: 1)
        static let rgb = of(colorSpace: 4, channels: 3)
        static let rgba = of(colorSpace: 4, channels: 3, extra: 1)
        static let cmyk = of(colorSpace: 6, channels: 4)

        private static func of(colorSpace: UInt32, channels: UInt32, extra: UInt32 = 0) -> UInt32 {
            colorSpace << 16 | extra << 7 | channels << 3 | 1
        }
    }

    /// An open profile.
    private final class OpenProfile {
        let handle: cmsHPROFILE
        let name: String

        var colorSpace: cmsColorSpaceSignature { cmsGetColorSpace(handle) }

        init(_ description: ColorDescription) throws(Unusable) {
            switch description {
            case .unusable(let reason): throw Unusable(reason)
            case .profile(let bytes):
                guard let profile = cmsOpenProfileFromMem(bytes, UInt32(bytes.count)) else {
                    throw Unusable("the ICC profile is damaged")
                }
                handle = profile
                name = Self.description(of: profile) ?? "a profile without a name"
            case .codePoints(let primaries, let transfer):
                guard let chromaticities = Chromaticities.ofCodePoints[primaries] else {
                    throw Unusable("colour primaries \(primaries) of ITU-T H.273 are not supported")
                }
                let curve: Curve
                switch transfer {
                // Video curves differ from the sRGB curve for viewing in the dark; photos are displayed the same way with both.
                case 1, 2, 6, 13, 14, 15: curve = .sRGB
                case 4: curve = .gamma(2.2)
                case 5: curve = .gamma(2.8)
                case 8: curve = .gamma(1)
                case 16, 18: throw Unusable("the image is in high dynamic range, which is not tone-mapped")
                default: throw Unusable("transfer characteristics \(transfer) of ITU-T H.273 are not supported")
                }
                handle = try Self.make(chromaticities, curve)
                name = primaries == 1 && curve == .sRGB ? "sRGB" : "H.273 primaries \(primaries) transfer \(transfer)"
            case .gamma(let gamma, let chromaticities):
                // The limits of libpng; a gamma outside of this range is invalid.
                if let gamma, !(0.01...100).contains(gamma) { throw Unusable("a gamma of \(gamma) is out of range") }
                handle = try Self.make(chromaticities ?? .sRGB, gamma.map { .gamma($0) } ?? .sRGB)
                name = "gamma and chromaticities of a PNG"
            }
        }

        deinit { cmsCloseProfile(handle) }

        private enum Curve: Equatable {
            case sRGB
            case gamma(Double)
        }

        private static func make(_ chromaticities: Chromaticities, _ curve: Curve) throws(Unusable) -> cmsHPROFILE {
            func point(_ point: Chromaticities.Point) -> cmsCIExyY { cmsCIExyY(x: point.x, y: point.y, Y: 1) }
            let toneCurve =
                switch curve {
                case .gamma(let exponent): cmsBuildGamma(nil, exponent)
                case .sRGB:  // IEC 61966-2-1
                    cmsBuildParametricToneCurve(nil, 4, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045])
                }
            defer { if let toneCurve { cmsFreeToneCurve(toneCurve) } }
            var white = point(chromaticities.white)
            var primaries = cmsCIExyYTRIPLE(
                Red: point(chromaticities.red), Green: point(chromaticities.green), Blue: point(chromaticities.blue))
            guard chromaticities.isSound, let toneCurve,
                let profile = cmsCreateRGBProfile(&white, &primaries, [toneCurve, toneCurve, toneCurve])
            else { throw Unusable("the chromaticities do not span a colour gamut") }
            return profile
        }

        private static func description(of profile: cmsHPROFILE) -> String? {
            var text = [CChar](repeating: 0, count: 256)
            _ = cmsGetProfileInfoASCII(profile, cmsInfoDescription, "en", "US", &text, UInt32(text.count - 1))
            let name = String(buffer: text)
            return name.isEmpty ? nil : name
        }
    }

    /// A conversion of samples to sRGB.
    ///
    /// Threads may share it: without its cache of one pixel (`cmsFLAGS_NOCACHE`) it is immutable.
    private final class Transform: @unchecked Sendable {
        private let handle: cmsHTRANSFORM

        init(_ profile: OpenProfile, input: UInt32, output: UInt32) throws(Unusable) {
            guard let target = cmsCreate_sRGBProfile() else { throw Unusable("not enough memory for the sRGB profile") }
            defer { cmsCloseProfile(target) }
            guard
                let transform = cmsCreateTransform(
                    profile.handle, input, target, output, UInt32(INTENT_PERCEPTUAL), UInt32(cmsFLAGS_NOCACHE))
            else { throw Unusable("the ICC profile cannot be converted to sRGB") }
            handle = transform
        }

        deinit { cmsDeleteTransform(handle) }

        /// Converts pixels in place; both formats have the same size.
        func convert(_ samples: inout [UInt8], bytesPerPixel: Int) {
            let pixels = UInt32(samples.count / bytesPerPixel)
            samples.withUnsafeMutableBufferPointer { cmsDoTransform(handle, $0.baseAddress, $0.baseAddress, pixels) }
        }

        /// Converts pixels to red, green and blue samples.
        func converted(_ samples: [UInt8], bytesPerPixel: Int) -> [UInt8] {
            let pixels = samples.count / bytesPerPixel
            return [UInt8](unsafeUninitializedCapacity: 3 * pixels) { target, count in
                cmsDoTransform(handle, samples, target.baseAddress, UInt32(pixels))
                count = 3 * pixels
            }
        }
    }
#endif
