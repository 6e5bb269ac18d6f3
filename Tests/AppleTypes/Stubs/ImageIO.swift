// swift-format-ignore-file
@_exported import CoreGraphics

public final class CGImageSource {}

public final class CGImageDestination {}

public enum CGImageSourceStatus: Int32, Sendable {
    case statusUnexpectedEOF = -5
    case statusInvalidData = -4
    case statusUnknownType = -3
    case statusReadingHeader = -2
    case statusIncomplete = -1
    case statusComplete = 0
}

public func CGImageSourceCreateWithData(_ data: CFData, _ options: CFDictionary?) -> CGImageSource? { fatalError() }
public func CGImageSourceGetPrimaryImageIndex(_ isrc: CGImageSource) -> Int { fatalError() }
public func CGImageSourceGetCount(_ isrc: CGImageSource) -> Int { fatalError() }
public func CGImageSourceGetStatusAtIndex(_ isrc: CGImageSource, _ index: Int) -> CGImageSourceStatus { fatalError() }
public func CGImageSourceCopyPropertiesAtIndex(
    _ isrc: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CFDictionary? { fatalError() }
public func CGImageSourceCreateImageAtIndex(
    _ isrc: CGImageSource, _ index: Int, _ options: CFDictionary?
) -> CGImage? { fatalError() }

public func CGImageDestinationCreateWithData(
    _ data: CFMutableData, _ type: CFString, _ count: Int, _ options: CFDictionary?
) -> CGImageDestination? { fatalError() }
public func CGImageDestinationAddImage(
    _ idst: CGImageDestination, _ image: CGImage, _ properties: CFDictionary?
) { fatalError() }
public func CGImageDestinationFinalize(_ idst: CGImageDestination) -> Bool { fatalError() }

public var kCGImageSourceShouldCache: CFString { fatalError() }
public var kCGImageSourceSubsampleFactor: CFString { fatalError() }
public var kCGImageDestinationLossyCompressionQuality: CFString { fatalError() }
public var kCGImagePropertyPixelWidth: CFString { fatalError() }
public var kCGImagePropertyPixelHeight: CFString { fatalError() }
public var kCGImagePropertyDepth: CFString { fatalError() }
public var kCGImagePropertyOrientation: CFString { fatalError() }
public var kCGImagePropertyHasAlpha: CFString { fatalError() }
public var kCGImagePropertyProfileName: CFString { fatalError() }
public var kCGImagePropertyColorModel: CFString { fatalError() }
public var kCGImagePropertyColorModelGray: CFString { fatalError() }
public var kCGImagePropertyColorModelCMYK: CFString { fatalError() }
